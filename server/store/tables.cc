#include "server/store/tables.h"

#include "server/store/describe.h"

namespace sublet::server::tables {

using protocol::EvictionSteps;
using scheduling::AbsenceRecord;
using scheduling::AttemptKey;
using scheduling::AttemptRecord;
using scheduling::AttemptState;
using scheduling::BatchRecord;
using scheduling::ChangeRecord;
using scheduling::JobRecord;
using scheduling::JobState;
using scheduling::MachineFailures;
using scheduling::MachineRecord;
using scheduling::MachineState;
using scheduling::OnNever;
using scheduling::PolicyChoice;
using scheduling::PoolRecord;
using scheduling::ProgramRecord;
using scheduling::Requirements;
using scheduling::StopWhen;
using scheduling::UseRecord;
using scheduling::UserRecord;

constinit const TableOf<PoolRow> kPool = {
    "pool",
    Storage::kApart,
    {
        key<&PoolRow::id>("id"),
        column<&PoolRow::version>("version"),
        column<&PoolRow::pool, &PoolRecord::next_job>("next_job"),
        column<&PoolRow::pool, &PoolRecord::next_batch>("next_batch"),
        column<&PoolRow::pool, &PoolRecord::next_machine>("next_machine"),
        column<&PoolRow::pool, &PoolRecord::next_change>("next_change"),
        column<&PoolRow::pool, &PoolRecord::last_tick>("last_tick"),
        column<&PoolRow::pool, &PoolRecord::indices_due>("indices_due"),
        column<&PoolRow::pool, &PoolRecord::now>("now"),
        column<&PoolRow::pool, &PoolRecord::utc_offset>("utc_offset"),
    },
};

constinit const TableOf<PoolIdRow> kPoolId = {
    "pool_id",
    Storage::kByKey,
    {key<&PoolIdRow::id>("id")},
};

constinit const TableOf<PolicyRow> kPolicy = {
    "policy",
    Storage::kByKey,
    {
        key<&PolicyRow::id>("id"),
        column<&PolicyRow::choice, &PolicyChoice::job_policy>("jobs"),
        column<&PolicyRow::choice, &PolicyChoice::machine_policy>("machines"),
        column<&PolicyRow::choice, &PolicyChoice::victim_policy>("victims"),
        column<&PolicyRow::choice, &PolicyChoice::candidates>("candidates"),
        column<&PolicyRow::choice, &PolicyChoice::half_life>("half_life"),
        column<&PolicyRow::choice, &PolicyChoice::floor>("floor"),
        column<&PolicyRow::choice, &PolicyChoice::cost_cpu>("cost_cpu"),
        column<&PolicyRow::choice, &PolicyChoice::initial_priority_zero>("initial_priority_zero"),
        column<&PolicyRow::choice, &PolicyChoice::turns_by_machine>("turns_by_machine"),
        column<&PolicyRow::choice, &PolicyChoice::charge_all>("charge_all"),
        column<&PolicyRow::choice, &PolicyChoice::drift>("drift"),
        column<&PolicyRow::choice, &PolicyChoice::throttle>("throttle"),
        column<&PolicyRow::choice, &PolicyChoice::throttle_span>("throttle_span"),
        column<&PolicyRow::choice, &PolicyChoice::wide_wait>("wide_wait"),
        column<&PolicyRow::choice, &PolicyChoice::licences>("licences"),
        column<&PolicyRow::choice, &PolicyChoice::most_per_user>("most_per_user"),
        column<&PolicyRow::choice, &PolicyChoice::most_per_machine>("most_per_machine"),
        column<&PolicyRow::since>("since"),
        column<&PolicyRow::by>("set_by"),
    },
};

constinit const TableOf<UserRecord> kUsers = {
    "users",
    Storage::kApart,
    {
        key<&UserRecord::name>("name"),
        column<&UserRecord::shares>("shares"),
        column<&UserRecord::usage>("usage"),
        column<&UserRecord::charges>("charges"),
        column<&UserRecord::by_administrator>("by_administrator"),
        column<&UserRecord::number>("number"),
        column<&UserRecord::last_grant>("last_grant"),
        column<&UserRecord::owed>("owed"),
        column<&UserRecord::index>("up_down_index"),
        column<&UserRecord::guaranteed>("guaranteed"),
        column<&UserRecord::drawn>("drawn"),
        column<&UserRecord::placed>("placed"),
        column<&UserRecord::placed_since>("placed_since"),
        column<&UserRecord::has_forgone>("has_forgone"),
    },
};

constinit const TableOf<MachineRecord> kMachines = {
    "machines",
    Storage::kByKey,
    {
        key<&MachineRecord::id>("id"),
        column<&MachineRecord::name>("name"),
        column<&MachineRecord::os>("os"),
        column<&MachineRecord::architecture>("architecture"),
        column<&MachineRecord::cores>("cores"),
        column<&MachineRecord::slots>("slots"),
        column<&MachineRecord::memory>("memory"),
        column<&MachineRecord::disk>("disk"),
        column<&MachineRecord::state>("state").up_to(MachineState::kGone),
        column<&MachineRecord::state_since>("state_since"),
        column<&MachineRecord::draining>("draining"),
        column<&MachineRecord::resources>("resources"),
        column<&MachineRecord::failures, &MachineFailures::count>("failures"),
        column<&MachineRecord::failures, &MachineFailures::last>("failed_at"),
        column<&MachineRecord::failures, &MachineFailures::reason>("failure"),
        column<&MachineRecord::failures, &MachineFailures::rests_until>("rests_until"),
        column<&MachineRecord::failures, &MachineFailures::unstarted>("unstarted"),
        column<&MachineRecord::failures, &MachineFailures::unstarted_first>("unstarted_first"),
        column<&MachineRecord::failures, &MachineFailures::unstarted_second>("unstarted_second"),
        column<&MachineRecord::speed>("speed"),
    },
};

constinit const TableOf<AbsenceRecord> kAbsences = {
    "absences",
    Storage::kByKey,
    {
        key<&AbsenceRecord::machine>("machine"),
        column<&AbsenceRecord::absences>("absences"),
    },
};

constinit const TableOf<CredentialRow> kCredentials = {
    "credentials",
    Storage::kByKey,
    {
        key<&CredentialRow::machine>("machine"),
        column<&CredentialRow::secret_digest>("secret"),
        column<&CredentialRow::uid>("uid"),
    },
};

constinit const TableOf<BatchRow> kBatches = {
    "batches",
    Storage::kByKey,
    {
        key<&BatchRow::id>("id"),
        column<&BatchRow::uid>("uid"),
        column<&BatchRow::user>("user_name"),
        column<&BatchRow::name>("name"),
        column<&BatchRow::submit_host>("submit_host"),
        column<&BatchRow::committed>("committed"),
        column<&BatchRow::touched>("touched"),
        column<&BatchRow::first_job>("first_job"),
        column<&BatchRow::count>("jobs"),
        column<&BatchRow::stop_when, &sublet::StopWhen::done>("stop_done"),
        column<&BatchRow::stop_when, &sublet::StopWhen::failed>("stop_failed"),
        column<&BatchRow::stop_when, &sublet::StopWhen::output>("stop_output"),
        column<&BatchRow::on_never>("on_never").up_to(sublet::OnNever::kRemove),
        column<&BatchRow::at_most>("at_most"),
    },
};

constinit const TableOf<BatchRecord> kStops = {
    "stops",
    Storage::kByKey,
    {
        key<&BatchRecord::id>("batch"),
        column<&BatchRecord::stop_when, &StopWhen::done>("stop_done"),
        column<&BatchRecord::stop_when, &StopWhen::failed>("stop_failed"),
        column<&BatchRecord::stop_when, &StopWhen::output>("stop_output"),
        column<&BatchRecord::done>("done"),
        column<&BatchRecord::failed>("failed"),
        column<&BatchRecord::stopped_by>("stopped_by"),
        column<&BatchRecord::at_most>("at_most"),
        column<&BatchRecord::to_come>("to_come"),
    },
};

constinit const TableOf<ProgramRecord> kPrograms = {
    "programs",
    Storage::kByKey,
    {
        key<&ProgramRecord::program>("program"), key<&ProgramRecord::architecture>("architecture"),
        key<&ProgramRecord::speed>("speed"), column<&ProgramRecord::runs>("runs"),
        column<&ProgramRecord::log_cpu>("log_cpu"), column<&ProgramRecord::last>("last"),
        no_column<&ProgramRecord::forgotten>("forgotten"),  // such a row is deleted
    },
};

constinit const TableOf<RelationRow> kRelations = {
    "relations",
    Storage::kByKey,
    {
        key<&RelationRow::job>("job"),
        column<&RelationRow::count>("count"),
        column<&RelationRow::on_never>("on_never").up_to(OnNever::kRemove),
        column<&RelationRow::waits_for>("waits_for"),
        column<&RelationRow::lost_by>("lost_by"),
        column<&RelationRow::lost_as>("lost_as").up_to(JobState::kDelivering),
        column<&RelationRow::gate>("gate").up_to(scheduling::Gate::kClosed),
    },
};

constinit const TableOf<DraftRow> kDrafts = {
    "drafts",
    Storage::kByKey,
    {
        key<&DraftRow::batch>("batch"),
        column<&DraftRow::user>("user_name"),
        column<&DraftRow::parts>("parts"),
        column<&DraftRow::jobs>("jobs"),
        column<&DraftRow::bytes>("bytes"),
        column<&DraftRow::entering>("entering"),
        column<&DraftRow::next_part>("next_part"),
        column<&DraftRow::next_range>("next_range"),
        column<&DraftRow::entered>("entered"),
        column<&DraftRow::gated>("gated"),
    },
    {
        {"drafts_live", "(batch) where entering = 1"},
    },
};

constinit const TableOf<PartRow> kParts = {
    "parts",
    Storage::kApart,
    {
        key<&PartRow::batch>("batch"),
        key<&PartRow::number>("number"),
        column<&PartRow::jobs>("jobs"),
        column<&PartRow::body>("body"),
    },
};

constinit const TableOf<SpecRow> kSpecs = {
    "specs",
    Storage::kApart,
    {
        key<&SpecRow::first_job>("first_job"),
        column<&SpecRow::count>("jobs"),
        column<&SpecRow::name>("name"),
        column<&SpecRow::body>("body"),
    },
};

constinit const TableOf<JobRecord> kJobs = {
    "jobs",
    Storage::kByKey,
    {
        key<&JobRecord::id>("id"),
        column<&JobRecord::batch>("batch"),
        column<&JobRecord::user>("user_name"),
        column<&JobRecord::state>("state").up_to(JobState::kDelivering),
        column<&JobRecord::attempts>("attempts"),
        column<&JobRecord::changed>("changed"),
        column<&JobRecord::count>("count"),
        packed_column<JobRecord>("packed"),
        packed<&JobRecord::index>("idx"),
        packed<&JobRecord::submit_host>("submit_host"),
        packed<&JobRecord::needs, &Requirements::os>("os"),
        packed<&JobRecord::needs, &Requirements::architecture>("architecture"),
        packed<&JobRecord::needs, &Requirements::cores>("cores"),
        packed<&JobRecord::needs, &Requirements::memory>("memory"),
        packed<&JobRecord::needs, &Requirements::disk>("disk"),
        packed<&JobRecord::priority>("priority"),
        packed<&JobRecord::retries_left>("retries_left"),
        packed<&JobRecord::evictions>("evictions"),
        packed<&JobRecord::share_priority>("share_priority"),
        packed<&JobRecord::share_priority_at>("share_priority_at"),
        packed<&JobRecord::generation>("generation"),
        packed<&JobRecord::checkpoint_bytes>("checkpoint_bytes"),
        packed<&JobRecord::submitted>("submitted"),
        packed<&JobRecord::cpu_kept>("cpu_kept"),
        packed<&JobRecord::cpu_lost>("cpu_lost"),
        packed<&JobRecord::reason>("reason"),
        packed<&JobRecord::refusals>("refusals"),
        packed<&JobRecord::not_before>("not_before"),
        packed<&JobRecord::share_priority_step>("share_priority_step"),
        packed<&JobRecord::needs, &Requirements::platforms>("platforms"),
        packed<&JobRecord::vain>("vain"),
        packed<&JobRecord::needs, &Requirements::require>("require"),
        packed<&JobRecord::needs, &Requirements::prefer>("prefer"),
        packed<&JobRecord::has_started>("has_started"),
        packed<&JobRecord::needs, &Requirements::resources>("resources"),
        packed<&JobRecord::needs, &Requirements::hours>("hours"),
        packed<&JobRecord::earliest>("earliest"),
        packed<&JobRecord::program>("program"),
    },
    {
        // Includes `attempts`, so that jobs still without an attempt need no table lookup.
        {"jobs_live", "(id, attempts) where state not in (5, 6, 7)"},
        {"jobs_batch", "(batch, state)"},
    },
};

constinit const TableOf<JobCountRow> kJobCounts = {
    "job_counts",
    Storage::kByKey,
    {
        key<&JobCountRow::batch>("batch"),
        key<&JobCountRow::user>("user_name"),
        key<&JobCountRow::month>("month"),
        key<&JobCountRow::state>("state").up_to(JobState::kDelivering),
        column<&JobCountRow::jobs>("jobs").adding(),
    },
};

constinit const TableOf<AttemptRecord> kAttempts = {
    "attempts",
    Storage::kByKey,
    {
        key<&AttemptRecord::key, &AttemptKey::job>("job"),
        key<&AttemptRecord::key, &AttemptKey::attempt>("attempt"),
        column<&AttemptRecord::machine>("machine"),
        column<&AttemptRecord::state>("state").up_to(AttemptState::kDelivering),
        column<&AttemptRecord::ended>("ended"),
        column<&AttemptRecord::reason>("reason"),
        column<&AttemptRecord::decided>("decided"),
        column<&AttemptRecord::started>("started"),
        column<&AttemptRecord::finished>("finished"),
        column<&AttemptRecord::resumed_generation>("resumed_generation"),
        column<&AttemptRecord::generation>("generation"),
        column<&AttemptRecord::cpu>("cpu"),
        column<&AttemptRecord::cpu_lost>("cpu_lost"),
        column<&AttemptRecord::leaving_since>("leaving_since"),
        column<&AttemptRecord::ready>("ready"),
        column<&AttemptRecord::charged>("charged"),
        column<&AttemptRecord::charged_left>("charged_left"),
        column<&AttemptRecord::preempted_for>("preempted_for"),
        column<&AttemptRecord::charged_new>("charged_new"),
        column<&AttemptRecord::charged_until>("charged_until"),
    },
    {
        {"attempts_live", "(job) where state <> 5"},
    },
};

constinit const TableOf<EndRow> kEnds = {
    "ends",
    Storage::kByKey,
    {
        key<&EndRow::key, &AttemptKey::job>("job"),
        key<&EndRow::key, &AttemptKey::attempt>("attempt"),
        column<&EndRow::exit_status>("exit_status"),
        column<&EndRow::signal>("signal"),
        column<&EndRow::memory_peak>("memory_peak"),
        column<&EndRow::checkpoint_bytes>("checkpoint_bytes"),
        column<&EndRow::resumed_ppm>("resumed_ppm"),
        column<&EndRow::progress_ppm>("progress_ppm"),
        column<&EndRow::steps, &EvictionSteps::gone>("quiesce_us"),
        column<&EndRow::stdout_cut>("stdout_cut"),
        column<&EndRow::stderr_cut>("stderr_cut"),
        column<&EndRow::steps, &EvictionSteps::told>("told_us"),
        column<&EndRow::steps, &EvictionSteps::demoted>("demoted_us"),
        column<&EndRow::steps, &EvictionSteps::save_asked>("save_asked_us"),
        column<&EndRow::steps, &EvictionSteps::saved>("saved_us"),
        column<&EndRow::processes_peak>("processes_peak"),
        column<&EndRow::disk_peak>("disk_peak"),
        column<&EndRow::network_bytes>("network_bytes"),
    },
};

constinit const TableOf<UseRecord> kUses = {
    "uses",
    Storage::kByKey,
    {
        key<&UseRecord::key, &AttemptKey::job>("job"),
        key<&UseRecord::key, &AttemptKey::attempt>("attempt"),
        column<&UseRecord::user>("user_name"),
        column<&UseRecord::machine>("machine"),
        column<&UseRecord::batch>("batch"),
        column<&UseRecord::ended>("ended"),
        column<&UseRecord::finished>("finished"),
        column<&UseRecord::wall>("wall"),
        column<&UseRecord::used>("used"),
        column<&UseRecord::kept>("kept"),
        column<&UseRecord::lost>("lost"),
        column<&UseRecord::charged>("charged"),
        column<&UseRecord::started>("started"),
        column<&UseRecord::waited>("waited"),
    },
    {
        {"uses_finished", "(finished)"},
    },
};

// CPU time used by the server itself, per minute.
constinit const TableOf<SpentRow> kSpent = {
    "spent",
    Storage::kByKey,
    {
        key<&SpentRow::at>("at"),
        column<&SpentRow::cpu>("cpu").adding(),
    },
};

constinit const TableOf<ChangeRecord> kChanges = {
    "changes",
    Storage::kByKey,
    {
        key<&ChangeRecord::number>("number"),
        column<&ChangeRecord::at>("at"),
        column<&ChangeRecord::job>("job"),
        column<&ChangeRecord::batch>("batch"),
        column<&ChangeRecord::user>("user_name"),
        column<&ChangeRecord::state>("state").up_to(JobState::kDelivering),
        column<&ChangeRecord::attempt>("attempt"),
        column<&ChangeRecord::ended>("ended"),
        column<&ChangeRecord::count>("count"),
    },
};

constinit const TableOf<FeedRow> kFeeds = {
    "feeds",
    Storage::kByKey,
    {
        key<&FeedRow::producer>("producer"),
        key<&FeedRow::name>("name"),
        key<&FeedRow::consumer>("consumer"),
        column<&FeedRow::count>("count"),
    },
};

constinit const TableOf<FileRow> kFiles = {
    "files",
    Storage::kApart,
    {
        key<&FileRow::id>("id"), column<&FileRow::kind>("kind").up_to(FileKind::kStderr),
        column<&FileRow::batch>("batch"), column<&FileRow::job>("job"),
        column<&FileRow::attempt>("attempt"), column<&FileRow::generation>("generation"),
        column<&FileRow::name>("name"), column<&FileRow::size>("size"),
        column<&FileRow::digest>("digest"), column<&FileRow::in_row>("in_row"),
        column<&FileRow::body>("body"), column<&FileRow::counts>("counts"),
        column<&FileRow::user>("user_name"), column<&FileRow::content>("content"),
        no_column<&FileRow::identity>("identity"),  // in table contents
        no_column<&FileRow::damaged>("damaged"),    // in table contents
    },
    {
        {"files_job", "(job, kind) where job > 0"},
        {"files_content", "(content) where content > 0"},
        {"files_batch", "(batch) where batch > 0"},
    },
};

// The contents stored in the spool folder, each named by its id; table files refers to them.
constinit const TableOf<ContentRow> kContents = {
    "contents",
    Storage::kByKey,
    {
        key<&ContentRow::id>("id"),
        column<&ContentRow::digest>("digest"),
        column<&ContentRow::size>("size"),
        column<&ContentRow::identity>("identity"),
        column<&ContentRow::damaged>("damaged"),
    },
    {
        {"contents_digest", "(digest)"},
    },
};

constinit const TableOf<SpoolUseRow> kSpoolUse = {
    "spool_use",
    Storage::kByKey,
    {
        key<&SpoolUseRow::user>("user_name"),
        key<&SpoolUseRow::checkpoints>("kind"),
        column<&SpoolUseRow::bytes>("bytes").adding(),
    },
};

constinit const TableOf<RemovedOutputRow> kRemovedOutputs = {
    "outputs_removed",
    Storage::kByKey,
    {
        key<&RemovedOutputRow::job>("job"),
        column<&RemovedOutputRow::at>("at"),
    },
};

constinit const TableOf<MemberRow> kMembers = {
    "members",
    Storage::kByKey,
    {
        key<&MemberRow::number>("number"),
        column<&MemberRow::role>("role").up_to(Role::kAdministrator),
        column<&MemberRow::name>("name"),
        column<&MemberRow::serial>("serial"),
        column<&MemberRow::previous_serials>("previous_serial"),
        column<&MemberRow::certificate>("certificate"),
        column<&MemberRow::expires>("expires"),
        column<&MemberRow::joined>("joined"),
        column<&MemberRow::invited_by>("invited_by"),
        column<&MemberRow::revoked>("revoked"),
    },
};

constinit const TableOf<InvitationRow> kInvitations = {
    "invitations",
    Storage::kByKey,
    {
        key<&InvitationRow::id>("id"),
        column<&InvitationRow::secret_digest>("secret"),
        column<&InvitationRow::role>("role").up_to(Role::kAdministrator),
        column<&InvitationRow::name>("name"),
        column<&InvitationRow::invited_by>("invited_by"),
        column<&InvitationRow::expires>("expires"),
        column<&InvitationRow::used_by>("used_by"),
        column<&InvitationRow::revoked>("revoked"),
    },
};

constinit const TableOf<QuotaRow> kQuotas = {
    "quotas",
    Storage::kByKey,
    {
        key<&QuotaRow::user>("user_name"),
        column<&QuotaRow::bytes>("bytes"),
    },
};

constinit const TableOf<RequestRow> kRequests = {
    "requests",
    Storage::kByKey,
    {
        key<&RequestRow::key>("id"),
        column<&RequestRow::digest>("digest"),
        column<&RequestRow::answer>("answer"),
        column<&RequestRow::at>("at"),
    },
    {
        {"requests_at", "(at)"},
    },
};

constinit const TableOf<EventRow> kEvents = {
    "events",
    Storage::kApart,
    {
        numbered<EventRow>("number"),
        column<&EventRow::at>("at"),
        column<&EventRow::kind>("kind"),
        column<&EventRow::body>("body"),
    },
};

std::span<const Table* const> all() {
  static constexpr const Table* kAll[] = {
      &kPool,     &kUsers,     &kMachines, &kCredentials,    &kBatches,   &kStops,       &kParts,
      &kSpecs,    &kJobs,      &kAttempts, &kEnds,           &kUses,      &kSpent,       &kChanges,
      &kFiles,    &kContents,  &kSpoolUse, &kRemovedOutputs, &kMembers,   &kInvitations, &kQuotas,
      &kRequests, &kEvents,    &kPoolId,   &kPolicy,         &kRelations, &kFeeds,       &kAbsences,
      &kPrograms, &kJobCounts, &kDrafts};
  return kAll;
}

}  // namespace sublet::server::tables
