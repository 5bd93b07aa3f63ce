// The servants with the fixed object keys: JobScheduler, ExecutionServer,
// MachineAllocator, AlarmSender, Spool, Accounting, Membership, Administration. They
// only convert types and call the services. A servant makes no remote call (rule 5).
//
// Each make_... returns a new servant, which the POA owns. The services outlive
// the ORB.
#ifndef SUBLET_SERVER_SERVANTS_SERVANTS_H_
#define SUBLET_SERVER_SERVANTS_SERVANTS_H_

#include <omniORB4/CORBA.h>

#include <string>

#include "server/access.h"
#include "server/administration.h"
#include "server/commit/pipeline.h"
#include "server/jobs/log_service.h"
#include "server/jobs/service.h"
#include "server/machines/logins.h"
#include "server/machines/service.h"
#include "server/members/members.h"
#include "server/question_gate.h"
#include "server/spool/service.h"
#include "server/store/archive/archive.h"

namespace sublet {
class Orb;
}

namespace sublet::server {

struct Services {
  Access& access;
  Pipeline& pipeline;
  Archive& archive;
  Sessions& sessions;
  Logins& logins;
  JobService& jobs;
  MachineService& machines;
  SpoolService& spool;
  LogService& logs;
  Members& members;
  AdministrationService& administration;
  QuestionGate& questions;
  Orb& orb;
  int64_t lease_ms = 0;
  int64_t tick_ms = 0;
  int call_timeout_ms = 0;  // of calls to workstations
  std::string pool_name;
  std::string pool_id;  // 16 octets
  uint64_t term = 0;    // of this server; idl/types.idl, ServerTerm
  Micros started = 0;
};

PortableServer::Servant make_job_scheduler(const Services& services);
PortableServer::Servant make_execution_server(const Services& services);
PortableServer::Servant make_machine_allocator(const Services& services);
PortableServer::Servant make_alarm_sender(const Services& services);
PortableServer::Servant make_spool(const Services& services);
PortableServer::Servant make_accounting(const Services& services);
PortableServer::Servant make_membership(const Services& services);
PortableServer::Servant make_administration(const Services& services);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVANTS_SERVANTS_H_
