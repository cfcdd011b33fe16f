#include "runtime/api/build_identity.h"

#include <elf.h>
#include <link.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tiercel {
namespace {

// Returns true if the object was loaded at the address of this code.
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

// The id among the notes of `bytes`; empty if there is none. The linker pads
// names and contents to 4 bytes.
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

// The object that this code is in, as it was loaded.
struct ThisObject {
  struct Part {  // a part of its file, in memory that is never written
    const std::byte* bytes;
    size_t count;
    size_t offset;
  };
  std::string path;
  std::string id;  // empty: it was linked without one
  std::vector<Part> parts;
};

int FindThis(dl_phdr_info* object, size_t /*size*/, void* found) {
  if (!HasThisCode(*object)) return 0;
  auto& it = *static_cast<ThisObject*>(found);
  const bool is_program = object->dlpi_name[0] == '\0';
  it.path = is_program ? "/proc/self/exe" : object->dlpi_name;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const auto* const at =
        // NOLINTNEXTLINE(performance-no-int-to-ptr): ELF gives integers
        reinterpret_cast<const std::byte*>(object->dlpi_addr + part.p_vaddr);
    if (part.p_type == PT_LOAD && (part.p_flags & PF_W) == 0) {
      it.parts.push_back({at, part.p_filesz, part.p_offset});
    } else if (part.p_type == PT_NOTE && it.id.empty()) {
      it.id = IdIn(reinterpret_cast<const char*>(at), part.p_memsz);
    }
  }
  return 1;
}

// Compares whole parts of this object. AddressSanitizer, which guards the
// memory between its constants, must not look, and it looks at every memcmp.
__attribute__((no_sanitize("address"))) bool AreSame(const std::byte* a,
                                                     const std::byte* b,
                                                     size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// Returns true if `bytes`, at `offset` of the file, are the ones that were
// loaded.
bool WereLoaded(const ThisObject& object, std::span<const std::byte> bytes,
                size_t offset) {
  return std::all_of(
      object.parts.begin(), object.parts.end(),
      [&](const ThisObject::Part& part) {
        const size_t begin = std::max(offset, part.offset);
        const size_t end =
            std::min(offset + bytes.size(), part.offset + part.count);
        return begin >= end ||
               AreSame(bytes.data() + (begin - offset),
                       part.bytes + (begin - part.offset), end - begin);
      });
}

// Hashes the whole file: writable data counts by its first values.
std::string HashOfFile(const ThisObject& object) {
  std::ifstream file(object.path, std::ios::binary);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), XXH3_freeState);
  if (!file || state == nullptr) return "";
  XXH3_128bits_reset(state.get());
  std::vector<std::byte> buffer(size_t{1} << 20);
  size_t offset = 0;
  while (file.read(reinterpret_cast<char*>(buffer.data()),
                   static_cast<std::streamsize>(buffer.size())) ||
         file.gcount() > 0) {
    const std::span<const std::byte> bytes(buffer.data(),
                                           static_cast<size_t>(file.gcount()));
    if (!WereLoaded(object, bytes, offset)) return "";
    XXH3_128bits_update(state.get(), bytes.data(), bytes.size());
    offset += bytes.size();
  }
  const bool whole = std::all_of(object.parts.begin(), object.parts.end(),
                                 [&](const ThisObject::Part& part) {
                                   return part.offset + part.count <= offset;
                                 });
  if (file.bad() || !whole) return "";
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return absl::StrCat("file-", absl::Hex(hash.high64, absl::kZeroPad16),
                      absl::Hex(hash.low64, absl::kZeroPad16));
}

}  // namespace

const std::string& BuildIdentity() {
  // Never destroyed: sessions may be made at a program's very end.
  static const auto* const identity = [] {
    ThisObject object;
    dl_iterate_phdr(FindThis, &object);
    return new std::string(object.id.empty() ? HashOfFile(object) : object.id);
  }();
  return *identity;
}

}  // namespace tiercel
