// Ticks, deadlines, restarts of the server, and shares.
#include <algorithm>
#include <unordered_map>

#include "protocol/lease.h"
#include "scheduling/state.h"

namespace sublet::scheduling {

void Pool::State::on(const SharesSet& event) {
  changes.answer().accepted = ledger.set_shares(event);
}

void Pool::State::on(const Ticked& event) {
  if (changes.counters().utc_offset != event.utc_offset) {
    changes.set_utc_offset(event.utc_offset);
    machines.note_local_time();
  }
  const Micros since_last = changes.tick();
  // What was charged under another policy decays, too.
  attempts.decay(ledger.decay(since_last));
  // Who waits is known of now only: not of all the time of a stopped server.
  const Micros span = std::min(since_last, most_unseen());
  if (policies.job->keeps_balances()) ledger.note_held(span, parameters.floor);
  update_indices();
}

// The source's coordinator polls its stations five times in a scheduling interval, and takes what
// has appeared since the last time as one (Mutka, 4.2.1). An update concerns all users: so it is an
// event of its own, and no decision waits for it.
void Pool::State::note_capacity() {
  if (!policies.want_indices() || changes.counters().indices_due != 0) return;
  const Micros period = std::max<Micros>(1, parameters.tick / 5);
  const Micros last_tick = changes.counters().last_tick;
  const Micros polls = (changes.now() - last_tick) / period;
  changes.set_indices_due(last_tick + (polls + 1) * period);
}

void Pool::State::update_indices() {
  changes.set_indices_due(0);
  if (policies.want_indices()) ledger.update_indices();
}

void Pool::State::on(const TimePassed&) {
  const Micros indices_due = changes.counters().indices_due;
  if (indices_due != 0 && indices_due <= changes.now()) update_indices();
  while (Timed* timed = due.reached(changes.now())) {
    if (timed->due_kind == Timed::Kind::kAttempt) {
      Attempt& attempt = *static_cast<Attempt*>(timed);
      if (attempts.reassign_at(attempt) <= changes.now()) {
        expire(attempt);
      } else {
        recall(attempt);
      }
    } else {
      machines.check(*static_cast<Machine*>(timed));
    }
  }
}

// A new server process has no reports yet: each machine is busy until it reports, and
// its leases start again now. REQUESTING gets an order that depends only on the stored
// jobs, and other policies take over what depends only on stored records, so that a restored brain
// continues exactly like one that was never stopped.
void Pool::State::on(const ServerStarted& event) {
  changes.set_utc_offset(event.utc_offset);
  matcher.give_up_all_licences();
  machines.restart();
  attempts.restart();
  if (event.parameters && policy.by.empty()) switch_policies(*event.parameters, "");
  jobs.hold_back_unaccounted(protocol::reassign_delay_us(parameters.lease));
  order_requesting();
}

void Pool::State::order_requesting() {
  std::unordered_map<Host*, JobId> oldest;
  for (const auto& [id, job] : jobs.all()) {
    if (job.record.state != JobState::kWaiting || job.waits_for != nullptr) continue;
    JobId& first = oldest.try_emplace(job.host, id).first->second;
    first = std::min(first, id);
  }
  std::vector<std::pair<JobId, Host*>> order;
  for (const auto& [host, id] : oldest) order.emplace_back(id, host);
  std::sort(order.begin(), order.end());
  std::vector<Host*> hosts;
  for (const auto& [id, host] : order) hosts.push_back(host);
  matcher.hosts().requeue(hosts);
}

}  // namespace sublet::scheduling
