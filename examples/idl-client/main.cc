// A client written from idl/ alone: submits a batch, waits, fetches, reports. See README.md.
#include <fstream>
#include <iostream>
#include <random>
#include <set>

#include "accounting.hh"
#include "job_scheduler.hh"
#include "spool.hh"

namespace v1 = Sublet::v1;

template <typename Octets = v1::Bytes>  // or RequestId
Octets to(const std::string& bytes) {
  Octets out;
  out.length(bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.get_buffer());
  return out;
}
std::string from(const auto& octets) {
  return {reinterpret_cast<const char*>(octets.get_buffer()), octets.length()};
}
void append(auto& sequence, const auto& element) {
  sequence.length(sequence.length() + 1);
  sequence[sequence.length() - 1] = element;
}
v1::RequestId new_request() {
  std::string bytes;
  for (std::random_device random; bytes.size() < 16;) bytes += char(random());
  return to<v1::RequestId>(bytes);
}

CORBA::ULongLong in_state(const v1::Counts& counts, std::set<CORBA::ULongLong> states) {
  CORBA::ULongLong sum = 0;
  for (CORBA::ULong i = 0; i < counts.length(); ++i)
    if (states.contains(counts[i].value)) sum += counts[i].number;
  return sum;
}

// Repeats a call whose answer was lost; the server recognizes it by its request id.
auto again(auto call) -> decltype(call()) try {
  return call();
} catch (const CORBA::SystemException&) {
  return omni_thread::sleep(2), call();
}

// Uploads in chunks; after a lost connection, continues at the server's offset.
v1::FileId upload(v1::Spool_ptr spool, v1::BatchId batch, const std::string& data) {
  const v1::FilePlace place{.kind = v1::FILE_INPUT, .batch = batch};
  const v1::RequestId id = new_request();
  return again([&] {
    v1::Upload_var at = spool->open_upload(id, place, data.size(), v1::Digest());
    while (at->offset < data.size())
      at->offset = spool->put(at->id, at->offset, to(data.substr(at->offset, v1::CHUNK_LIMIT)));
    return spool->close_upload(at->id);
  });
}
void fetch(v1::Spool_ptr spool, v1::JobId job, const v1::OutputInfo& output) {
  const v1::FilePlace place{.kind = output.kind, .job = job, .name = output.name};
  std::string all;
  const auto next = [&] { return v1::Bytes_var(spool->get(place, all.size(), v1::CHUNK_LIMIT)); };
  while (all.size() < output.size) {
    const v1::Bytes_var part = again(next);
    if (part->length() == 0) throw std::runtime_error("an output is shorter than announced");
    all += from(part.in());
  }
  std::ofstream file("job-" + std::to_string(job) + "." + from(output.name), std::ios::binary);
  if (!(file << all).flush()) throw std::runtime_error("an output could not be written");
}

void run(CORBA::ORB_ptr orb, const std::string& at, const std::string& contents) {
  const auto find = [&](const char* key) {
    return CORBA::Object_var(orb->string_to_object((at + key).c_str()));
  };
  v1::JobScheduler_var scheduler = v1::JobScheduler::_unchecked_narrow(find("JobScheduler"));
  v1::Spool_var spool = v1::Spool::_unchecked_narrow(find("Spool"));
  v1::Accounting_var accounting = v1::Accounting::_unchecked_narrow(find("Accounting"));
  const v1::RequestId opening = new_request(), committing = new_request();
  const v1::BatchId batch = again([&] { return scheduler->open_batch(opening, {}); });
  v1::JobDescriptions jobs;
  for (const char* how : {"--unique", "--reverse"}) {
    v1::JobDescription job{.program = to("sort")};
    for (const char* word : {how, "--output=sorted", "data"}) append(job.arguments, to(word));
    append(job.inputs, v1::InputFile{upload(spool, batch, contents), to("data"), false});
    append(job.outputs, v1::OutputFile{to("sorted"), true});
    append(jobs, job);
  }
  again([&] { scheduler->append(batch, 0, jobs); });
  const v1::JobRange ours = again([&] { return scheduler->commit_batch(committing, batch); });
  for (v1::HistoryNumber since = 0;;) {
    v1::Counts_var counts =
        again([&] { return v1::Counts_var(scheduler->count({.batch = batch})); });
    if (in_state(counts, {v1::JOB_DONE, v1::JOB_FAILED, v1::JOB_REMOVED}) == ours.count) break;
    since = again([&] { return v1::ChangePage_var(scheduler->changes_since(since, 5000)); })->last;
  }
  for (v1::JobId id = ours.first; id < ours.first + ours.count; ++id) {
    v1::JobDetail_var job = again([&] { return v1::JobDetail_var(scheduler->show(id)); });
    std::cout << "job " << id << ", state " << job->summary.state << "\n";
    for (CORBA::ULong i = 0; i < job->outputs.length(); ++i) fetch(spool, id, job->outputs[i]);
  }
  v1::ReportQuery query{};
  append(query.by, v1::BY_USER);
  v1::UsagePage_var used = accounting->usage(query, v1::Bytes(), 1000);
  for (auto *u = used->lines.get_buffer(), *end = u + used->lines.length(); u != end; ++u)
    std::cout << u->group[0].value << ": " << u->jobs_done << " jobs, " << u->cpu_us << " us\n";
}

template <typename... Kinds>  // the IDL's exceptions, which all have these members
bool tell(const CORBA::Exception& e) {
  const auto one = [](auto* k) { return k && std::cerr << k->message << " " << k->advice << "\n"; };
  return (one(dynamic_cast<const Kinds*>(&e)) || ...);
}

int main(int argc, char** argv) try {
  const char* options[][2] = {{"nativeCharCodeSet", "UTF-8"}, {"defaultCharCodeSet", "UTF-8"}, {}};
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
  omniORB::setClientCallTimeout(15'000);
  std::ifstream input(argc == 3 ? argv[2] : "", std::ios::binary);
  if (!input) return std::cerr << "usage: idl-client SERVER_SOCKET INPUT_FILE\n", 2;
  const std::string contents{std::istreambuf_iterator<char>(input), {}};
  run(orb, std::string("corbaloc:omniunix:") + argv[1] + ":/", contents);
} catch (const CORBA::Exception& e) {
  std::cerr << e._name() << "\n";
  return 1 + tell<v1::Invalid, v1::NotFound, v1::NotPermitted, v1::Conflict, v1::LimitExceeded,
                  v1::Unavailable>(e);
} catch (const std::exception& e) {
  return std::cerr << e.what() << "\n", 1;
}
