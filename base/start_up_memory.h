// How a daemon that runs for months on somebody's workstation keeps its memory small.
#ifndef SUBLET_BASE_START_UP_MEMORY_H_
#define SUBLET_BASE_START_UP_MEMORY_H_

namespace sublet {

// To be called first in main(): threads share two heaps. By default each gets one of its own
// while it competes for another's, and the memory that is free in one is of no use to the others.
void share_heaps();

// Gives back what only the start needed, or work that is over: free heap memory, and the pages of
// code and constants, which stay in the kernel's cache and are mapped again where they are used.
// Most of a daemon's code reads its command line and settings or belongs to libraries, and the
// kernel maps 16 pages for each one that is used. Must come before mlockall(), which would keep all
// of them in memory. Other threads may run meanwhile. A debugger's breakpoints are lost. Does not
// fail: what cannot be given back is kept.
void release_start_up_memory();

// Maps all code of the program itself again, but not that of its libraries: for what must act at
// once, and beside programs that take all memory. After mlockall() it stays in memory.
void keep_own_code();

}  // namespace sublet

#endif  // SUBLET_BASE_START_UP_MEMORY_H_
