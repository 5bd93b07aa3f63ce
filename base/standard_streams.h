// Standard input, output and error of a program that may be started without
// them (`daemon <&- >&- 2>&-`, some supervisors). The next descriptors made would
// take their places: libraries make theirs before main begins (the ORB its
// pipes), and lines for people would go there.
#ifndef SUBLET_BASE_STANDARD_STREAMS_H_
#define SUBLET_BASE_STANDARD_STREAMS_H_

namespace sublet {

// Called first in main, of programs only: puts /dev/null where descriptors 0, 1
// or 2 are closed. A program that calls this does the same once before that,
// before the libraries it is linked with begin.
void keep_standard_streams();

}  // namespace sublet

#endif  // SUBLET_BASE_STANDARD_STREAMS_H_
