#include "base/start_up_memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace sublet {
namespace {

constexpr int kHeaps = 2;

// What can be read again from the file: segments that cannot be written to. Not what is read-only
// since the dynamic linker has written to it, which belongs to a writable segment.
bool is_of_file(const ElfW(Phdr) & segment) {
  return segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0;
}

void advise(const dl_phdr_info& object, const ElfW(Phdr) & segment, int advice) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (object.dlpi_addr + segment.p_vaddr) & ~(page - 1);
  const uintptr_t end = object.dlpi_addr + segment.p_vaddr + segment.p_memsz;
  madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

int unmap(dl_phdr_info* object, size_t, void*) {
  // A copy, because the list is itself in one of them.
  const std::vector<ElfW(Phdr)> segments(object->dlpi_phdr, object->dlpi_phdr + object->dlpi_phnum);
  for (const auto& segment : segments)
    if (is_of_file(segment)) advise(*object, segment, MADV_DONTNEED);
  return 0;
}

int map_code(dl_phdr_info* object, size_t, void*) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (is_of_file(segment) && (segment.p_flags & PF_X) != 0)
      advise(*object, segment, MADV_POPULATE_READ);
  }
  return 1;  // no more: the first is the program
}

}  // namespace

void share_heaps() { mallopt(M_ARENA_MAX, kHeaps); }

void release_start_up_memory() {
  malloc_trim(0);
  dl_iterate_phdr(unmap, nullptr);
}

void keep_own_code() { dl_iterate_phdr(map_code, nullptr); }

}  // namespace sublet
