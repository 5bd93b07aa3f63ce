#include "server/store/relation_row.h"

#include "protocol/codec.h"

namespace sublet::server {

using scheduling::After;

RelationRow row_of(const scheduling::RelationRecord& record) {
  protocol::Encoder out;
  out.number(uint64_t{record.on.size()});
  for (const scheduling::Dependence& dependence : record.on) {
    out.number(dependence.jobs.first);
    out.number(dependence.jobs.count);
    out.number(static_cast<uint32_t>(dependence.condition));
  }
  return {record.jobs.first, record.jobs.count, record.on_never, out.take(),
          record.lost_by,    record.lost_as,    record.gate};
}

scheduling::RelationRecord record_of(const RelationRow& row) {
  scheduling::RelationRecord record{{row.job, row.count}, row.on_never, {},      row.lost_by,
                                    row.lost_as,          false,        row.gate};
  protocol::Decoder in(row.waits_for);
  record.on.resize(in.count(24));
  for (scheduling::Dependence& dependence : record.on) {
    dependence.jobs.first = in.number();
    dependence.jobs.count = in.number();
    const uint32_t condition = in.number32();
    if (condition < 1 || condition > static_cast<uint32_t>(After::kStarted))
      throw protocol::Damaged("a condition that is not known");
    dependence.condition = static_cast<After>(condition);
  }
  if (!in.at_end()) throw protocol::Damaged("more than it has room for");
  return record;
}

}  // namespace sublet::server
