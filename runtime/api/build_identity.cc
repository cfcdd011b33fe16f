#include "runtime/api/build_identity.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace tiercel {
namespace {

// Whether the object was loaded where this code is.
bool HasThisCode(const dl_phdr_info& object) {
  const auto here = reinterpret_cast<uintptr_t>(&HasThisCode);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && here >= begin &&
        here - begin < part.p_memsz) {
      return true;
    }
  }
  return false;
}

// The id among the notes of `bytes`; empty where it is not there. The linker
// wrote them: name and contents are filled up to 4 bytes.
std::string IdIn(const char* notes, size_t bytes) {
  const auto filled = [](size_t n) { return (n + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    const size_t name = sizeof(note);
    const size_t contents = name + filled(note.n_namesz);
    const size_t end = contents + filled(note.n_descsz);
    if (end > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
        std::memcmp(notes + name, "GNU", sizeof("GNU")) == 0) {
      return absl::BytesToHexString(
          absl::string_view(notes + contents, note.n_descsz));
    }
    notes += end;
    bytes -= end;
  }
  return "";
}

int FindId(dl_phdr_info* object, size_t /*size*/, void* id) {
  if (!HasThisCode(*object)) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    auto& found = *static_cast<std::string*>(id);
    found =
        IdIn(reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr),
             part.p_memsz);
    if (!found.empty()) break;
  }
  return 1;
}

}  // namespace

std::string BuildIdentity() {
  std::string id;
  dl_iterate_phdr(FindId, &id);
  return id;
}

}  // namespace tiercel
