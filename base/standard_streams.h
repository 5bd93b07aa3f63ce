// Standard input, output and error of a program that may be started without
// them (`daemon <&- >&- 2>&-`, some supervisors). Other descriptors would get their
// numbers: libraries open some before main begins (the ORB its pipes), and messages
// would be written to them.
#ifndef SUBLET_BASE_STANDARD_STREAMS_H_
#define SUBLET_BASE_STANDARD_STREAMS_H_

namespace sublet {

// To be called first in main: opens /dev/null for each of descriptors 0, 1 and 2 that is
// closed. A program that calls this also does so before its libraries are initialised.
void keep_standard_streams();

}  // namespace sublet

#endif  // SUBLET_BASE_STANDARD_STREAMS_H_
