// The translation of a job between the types of the public contract and
// job/description.h. Pure functions; any thread.
#ifndef SUBLET_JOB_IDL_TRANSLATION_H_
#define SUBLET_JOB_IDL_TRANSLATION_H_

#include <string>
#include <vector>

#include "job/description.h"
#include "job/file_place.h"
#include "job/stop_when.h"
#include "spool.hh"
#include "types.hh"

namespace sublet {

// Unknown fields of an order or an answer are ignored.
JobDescription from_idl(const Sublet::v1::JobDescription& job);
Requirements from_idl(const Sublet::v1::Requirements& needs);
std::vector<Axis> from_idl(const Sublet::v1::Axes& axes);
Details from_idl(const Sublet::v1::Details& details);
// Not checked.
rules::NamedAmounts from_idl(const Sublet::v1::ResourceList& resources);
FilePlace from_idl(const Sublet::v1::FilePlace& place);

// Sets every field: unsupported ones to 0, empty or FALSE.
void to_idl(const JobDescription& job, Sublet::v1::JobDescription& out);
void to_idl(const std::vector<Axis>& axes, Sublet::v1::Axes& out);
void to_idl(const Details& details, Sublet::v1::Details& out);
void to_idl(const rules::NamedAmounts& resources, Sublet::v1::ResourceList& out);
void to_idl(const FilePlace& place, Sublet::v1::FilePlace& out);

// A submission or an order must not use unsupported fields: throws JobError "not.served"
// for a reserved field with a value and for an unknown name in a `more`. The error's subject is
// `subject`, e.g. "job 3", and the field: "job 3: needs.require".
void check_served(const Sublet::v1::JobDescription& job, const std::string& subject);
void check_served(const Sublet::v1::Requirements& needs, const std::string& subject);
void check_served(const Sublet::v1::Axes& axes, const std::string& subject);

}  // namespace sublet

#endif  // SUBLET_JOB_IDL_TRANSLATION_H_
