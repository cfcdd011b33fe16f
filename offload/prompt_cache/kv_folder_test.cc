#include "offload/prompt_cache/kv_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/no_privileges_for_test.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;

constexpr KvLayout kLayout = {DType::kF16, DType::kQ8_0, /*kv_heads=*/2,
                              /*head_dim=*/32};
constexpr int kLayers = 3;
constexpr uint64_t kPlenty = uint64_t{1} << 30;

// A text of `positions` ids. Those from `other` on depend on `text`.
KvFileInfo TextOf(int64_t positions, int64_t other = 1 << 30, int text = 1) {
  KvFileInfo info;
  info.fingerprint = "a model";
  info.title = "m.gguf";
  info.layout = kLayout;
  info.layers = kLayers;
  for (int64_t i = 0; i < positions; ++i) {
    info.ids.push_back(static_cast<int32_t>(i < other ? i : -text));
  }
  return info;
}

class KvFolderTest : public testing::Test {
 protected:
  KvFolder Folder(DiskCalls& disk = GoodDisk(), uint64_t most = kPlenty) {
    return {path(), most, disk};
  }
  std::string path() const { return folder_.path() + "/texts"; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  absl::Status Save(const KvFileInfo& info, DiskCalls& disk = GoodDisk(),
                    uint64_t most = kPlenty) {
    return Folder(disk, most)
        .Save(info, *PagesForTest(kLayout, kLayers, info.positions()), kGoOn);
  }
  // The number of first tokens of `info` that the folder has; -1 if none.
  int64_t Common(const KvFileInfo& info) {
    const auto found = Folder().Find(info.fingerprint, info.ids);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() && found->has_value() ? (*found)->common : -1;
  }
  // Reads all pages of the text, and checks that they are as they were saved.
  static absl::Status ReadAll(const KvFile& file) {
    const auto pages = PagesForTest(kLayout, kLayers, file.info().positions());
    const auto bytes = static_cast<size_t>(kLayout.PageBytes());
    std::vector<std::byte> page(bytes);
    DiskUse use;
    int64_t seen = 0;
    const absl::Status status = file.Read(
        0, file.info().Pages(), [](int64_t) { return true; },
        [&](int layer, int64_t index, const std::byte* got) {
          EXPECT_TRUE(pages->Read(layer, index, page.data()).ok());
          EXPECT_TRUE(std::equal(page.begin(), page.end(), got))
              << "layer " << layer << " page " << index;
          ++seen;
          return absl::OkStatus();
        },
        KvStore::Nowhere, kGoOn, &use);
    if (status.ok()) {
      EXPECT_EQ(seen, kLayers * file.info().Pages());
      EXPECT_EQ(use.read_bytes, seen * bytes);
    }
    return status;
  }
  absl::Status FindAndRead(const KvFileInfo& info, DiskCalls& disk) {
    const auto found = Folder(disk).Find(info.fingerprint, info.ids);
    if (!found.ok()) return found.status();
    if (!found->has_value()) return IoError("not_found", "");
    return ReadAll(*(*found)->file);
  }

  FolderForTest folder_;
};

TEST_F(KvFolderTest, ATextServesWhatBeginsAsItDoes) {
  EXPECT_EQ(Common(TextOf(2000)), -1);
  EXPECT_TRUE(Save(TextOf(1024), SystemDisk()).ok());
  for (const int64_t positions : {1024, 1279, 1280, 1281}) {
    const KvFileInfo info = TextOf(positions);
    ASSERT_TRUE(Save(info).ok());
    EXPECT_TRUE(FindAndRead(info, GoodDisk()).ok());
  }
  EXPECT_EQ(Common(TextOf(1281)), 1281);
  EXPECT_EQ(Common(TextOf(2000)), 1281);
  EXPECT_EQ(Common(TextOf(1280)), 1280);
  EXPECT_EQ(Common(TextOf(1270)), 1270);
  EXPECT_EQ(Common(TextOf(2000, 1279)), 1279);
  EXPECT_EQ(Common(TextOf(2000, 256)), 256);
  EXPECT_EQ(Common(TextOf(2000, 255)), -1);
  EXPECT_EQ(Common(TextOf(255)), -1);
  KvFileInfo other = TextOf(1281);
  other.fingerprint = "another model";
  EXPECT_EQ(Common(other), -1);
}

// A text whose name is that of another is told from it by its contents.
TEST_F(KvFolderTest, NamesAreNotBelieved) {
  const KvFileInfo info = TextOf(1100);
  KvFileInfo other = TextOf(1100);
  other.fingerprint = "another model";
  ASSERT_TRUE(Save(other).ok());
  const std::string theirs = Names().at(0);
  ASSERT_TRUE(Save(info).ok());
  for (const std::string& name : Names()) {
    if (name != theirs) fs::rename(path() + "/" + theirs, path() + "/" + name);
  }
  EXPECT_EQ(Common(info), -1);
  ASSERT_TRUE(Save(info).ok());
  // A text with the same name may have other tokens.
  ASSERT_TRUE(Save(TextOf(1100, 200)).ok());
  const std::string ours =
      Folder().Find("a model", info.ids).value()->file->name();
  for (const std::string& name : Names()) {
    if (name != ours) fs::rename(path() + "/" + name, path() + "/" + ours);
  }
  EXPECT_EQ(Common(info), -1);
  ASSERT_TRUE(Save(info).ok());
  KvFileInfo later = TextOf(1100, 1050);
  ASSERT_TRUE(Save(later).ok());
  ASSERT_EQ(Names().size(), 2u);
  fs::rename(path() + "/" + Names()[0], path() + "/" + Names()[1]);
  EXPECT_GE(Common(info), 1050);
}

TEST_F(KvFolderTest, OnlyThisUserMayReadOrWrite) {
  const mode_t before = umask(0);
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  umask(before);
  struct stat status;
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((path() + "/" + Names().at(0)).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto expect_unsafe = [&] {
    EXPECT_EQ(CodeOf(Save(TextOf(1200))), "unsafe_folder");
    EXPECT_EQ(CodeOf(Folder().Find("a model", TextOf(1100).ids).status()),
              "unsafe_folder");
  };
  for (const mode_t mode : {0777, 0720, 0702}) {
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
    expect_unsafe();
  }
  ASSERT_EQ(chmod(path().c_str(), 0700), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path().c_str(), 1234, static_cast<gid_t>(-1)), 0);
    expect_unsafe();
  }
  EXPECT_EQ(Folder().List()->size(), 1u);
}

TEST_F(KvFolderTest, FoldersThatAreNoneAreErrors) {
  std::ofstream(folder_.path() + "/file") << "x";
  fs::create_directory_symlink(folder_.path() + "/nowhere",
                               folder_.path() + "/link");
  const auto pages = PagesForTest(kLayout, kLayers, 1100);
  EXPECT_TRUE(KvFolder(folder_.path() + "/link", kPlenty).List()->empty());
  for (const char* name : {"file", "link", "file/below"}) {
    KvFolder folder(folder_.path() + "/" + name, kPlenty, GoodDisk());
    EXPECT_EQ(CodeOf(folder.Save(TextOf(1100), *pages, kGoOn)), "io_error")
        << name;
    if (std::string(name) == "link") continue;  // the link leads nowhere
    EXPECT_FALSE(folder.Find("a model", TextOf(1100).ids).ok()) << name;
  }
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  ASSERT_EQ(chmod(path().c_str(), 0500), 0);
  const NoPrivileges none;
  EXPECT_EQ(CodeOf(Save(TextOf(1200))), "io_error");
  EXPECT_EQ(Common(TextOf(1100)), 1100);
}

// The path may be a link, for example to a folder on another disk.
TEST_F(KvFolderTest, ALinkLeadsToAFolder) {
  ASSERT_EQ(mkdir((folder_.path() + "/real").c_str(), 0700), 0);
  fs::create_directory_symlink(folder_.path() + "/real", path());
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  EXPECT_EQ(Common(TextOf(1100)), 1100);
  EXPECT_EQ(KvFolder(path() + "/", kPlenty).List()->size(), 1u);
  ASSERT_EQ(chmod((folder_.path() + "/real").c_str(), 0777), 0);
  EXPECT_EQ(CodeOf(Save(TextOf(1200))), "unsafe_folder");
  EXPECT_EQ(Folder().Clear().value(), 1);
  EXPECT_TRUE(fs::is_symlink(path()));
}

// ---- Faults ----

// Each call of a save fails, once or from there on. The text is saved wholly or
// not at all, an older one stays, and no partial file is left.
TEST_F(KvFolderTest, ASaveThatFailsLeavesNothing) {
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  const KvFileInfo info = TextOf(1300, 1050);
  for (const int error : {ENOSPC, EIO}) {
    for (const int64_t more : {0, 1 << 30}) {
      for (int64_t call = 0;; ++call) {
        FaultyDisk disk;
        disk.counts_reads = false;
        disk.fail_at = call;
        disk.more = more;
        disk.error = error;
        const absl::Status status = Save(info, disk);
        const bool was_there = Common(info) == 1300;
        if (!disk.failed()) {
          EXPECT_TRUE(status.ok());
          EXPECT_TRUE(was_there);
          EXPECT_GT(call, 5);
          break;
        }
        EXPECT_EQ(CodeOf(status), error == EIO ? "io_error" : "disk_full");
        EXPECT_EQ(Names().size(), was_there ? 2u : 1u) << "call " << call;
        if (was_there) {  // only the sync of its name failed
          EXPECT_TRUE(FindAndRead(info, GoodDisk()).ok());
          EXPECT_EQ(Folder().Clear().value(), 2);
          ASSERT_TRUE(Save(TextOf(1100)).ok());
        }
        EXPECT_EQ(Common(TextOf(1100)), 1100);
      }
      Folder().Clear().value();
      ASSERT_TRUE(Save(TextOf(1100)).ok());
    }
  }
}

TEST_F(KvFolderTest, ShortWritesAreContinued) {
  FaultyDisk disk;
  disk.counts_reads = false;
  disk.at_once = 1000;
  disk.fail_at = 3;
  disk.more = 20;
  disk.error = EINTR;
  disk.counts_writes = true;
  // Sync and rename are not interrupted.
  EXPECT_TRUE(Save(TextOf(1100), disk).ok());
  EXPECT_TRUE(FindAndRead(TextOf(1100), GoodDisk()).ok());
}

// Every call is interrupted some times, except renames: after an interruption
// the caller could not know if the file was renamed.
TEST_F(KvFolderTest, WhatASignalInterruptsIsDoneAgain) {
  struct InterruptedDisk : FaultyDisk {
    int locks = 0;
    int TryLock(int file, int operation) override {
      errno = EINTR;
      return ++locks % 4 != 0 ? -1 : FaultyDisk::TryLock(file, operation);
    }
  };
  const KvFileInfo info = TextOf(1100);
  for (int64_t call = 0;; ++call) {
    fs::create_directory(path());
    std::ofstream(path() + "/part-1-2.kv") << "half a text";
    InterruptedDisk disk;
    disk.fail_at = call;
    disk.more = 4;
    disk.error = EINTR;
    disk.counts_renames = false;
    const absl::Status saved = Save(info, disk);
    EXPECT_TRUE(saved.ok()) << "call " << call << ": " << saved;
    EXPECT_EQ(Names().size(), 1u);
    const absl::Status read = FindAndRead(info, disk);
    EXPECT_TRUE(read.ok()) << "call " << call << ": " << read;
    fs::remove_all(path());
    if (!disk.failed()) {
      EXPECT_GT(call, 10);
      break;
    }
  }
}

// All else must be on the disk when the record is written that says so.
TEST_F(KvFolderTest, TheCommitRecordIsWrittenBehindASync) {
  struct NotedDisk : DiskForTest {
    std::string calls;  // w and s, of which repeated ones count once
    void Note(char call) {
      if (calls.empty() || calls.back() != call) calls += call;
    }
    ssize_t Write(int file, const std::byte* from, size_t bytes,
                  uint64_t offset) override {
      Note('w');
      return DiskForTest::Write(file, from, bytes, offset);
    }
    int TrySync(int file) override {
      Note('s');
      return DiskForTest::TrySync(file);
    }
  };
  NotedDisk disk;
  EXPECT_TRUE(Save(TextOf(1100), disk).ok());
  EXPECT_EQ(disk.calls, "wsws");
}

TEST_F(KvFolderTest, AFileThatIsRemovedBeforeItIsLockedIsMadeAgain) {
  fs::create_directory(path());
  const auto open_files = [] {
    const fs::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto before = open_files();
  RemovingDisk disk(path());
  EXPECT_TRUE(Save(TextOf(1100), disk).ok());
  EXPECT_TRUE(disk.has_removed());
  EXPECT_EQ(Common(TextOf(1100)), 1100);
  EXPECT_EQ(open_files(), before);
}

TEST_F(KvFolderTest, AFileOfAnotherUserIsNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  const std::string name = path() + "/" + Names().at(0);
  EXPECT_EQ(chown(name.c_str(), /*owner=*/1, /*group=*/1), 0);
  EXPECT_EQ(Common(TextOf(1100)), -1);
}

TEST_F(KvFolderTest, AFolderThatCannotBeSyncedIsNoFailure) {
  struct NoFolderSync : FaultyDisk {
    int TrySync(int file) override {
      struct stat status;
      if (fstat(file, &status) != 0 || !S_ISDIR(status.st_mode)) return 0;
      errno = error;
      return -1;
    }
  };
  for (const int error : {EINVAL, ENOTSUP, ENOSYS, EROFS, EIO}) {
    NoFolderSync disk;
    disk.error = error;
    const absl::Status saved = Save(TextOf(1100), disk);
    EXPECT_EQ(saved.ok(), error != EIO) << saved;
  }
}

TEST_F(KvFolderTest, ReadsThatFailAreErrors) {
  const KvFileInfo info = TextOf(1100);
  ASSERT_TRUE(Save(info).ok());
  for (int64_t call = 0;; ++call) {
    FaultyDisk disk;
    disk.counts_writes = false;
    disk.fail_at = call;
    disk.at_once = static_cast<size_t>(kLayout.PageBytes());
    const absl::Status status = FindAndRead(info, disk);
    if (!disk.failed()) {
      EXPECT_TRUE(status.ok());
      EXPECT_GT(call, 20);
      break;
    }
    EXPECT_EQ(CodeOf(status), "io_error") << "call " << call;
  }
}

TEST_F(KvFolderTest, ASaveEndsWhenItIsToldTo) {
  const auto pages = PagesForTest(kLayout, kLayers, 1100);
  for (const int after : {0, 1, 26}) {
    int asked = 0;
    EXPECT_EQ(CodeOf(Folder().Save(TextOf(1100), *pages,
                                   [&] { return asked++ == after; })),
              "cancelled");
    EXPECT_TRUE(Names().empty());
  }
}

class DamageTest : public KvFolderTest {
 protected:
  DamageTest() {
    EXPECT_TRUE(Save(info_).ok());
    file_ = path() + "/" + Names().at(0);
    std::ifstream in(file_, std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(in), {});
  }
  // Has `damage` change the bytes of a file, and reads it.
  void Damage(const std::function<void(std::string&)>& damage,
              const std::string& what) {
    std::string bytes = whole_;
    damage(bytes);
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
    const absl::Status status = FindAndRead(info_, GoodDisk());
    EXPECT_TRUE(CodeOf(status) == "text_damaged" ||
                CodeOf(status) == "not_found")
        << what << ": " << status;
  }

  const KvFileInfo info_ = TextOf(1100);
  std::string file_;
  std::string whole_;
};

TEST_F(DamageTest, AFileThatIsTornAnywhereIsNoText) {
  const KvFileInfo& info = info_;
  std::vector<uint64_t> places = {0,
                                  1,
                                  79,
                                  80,
                                  info.FrontBytes() - 1,
                                  info.FrontBytes(),
                                  info.PayloadOffset(),
                                  info.FileBytes() - 1};
  for (int layer = 0; layer <= kLayers; ++layer) {
    for (int64_t page = 0; page < info.Pages(); ++page) {
      if (layer == kLayers && page > 0) continue;
      places.push_back(info.PageOffset(layer, page));
    }
  }
  for (const uint64_t place : places) {
    const std::string what = std::to_string(place);
    Damage([&](std::string& bytes) { bytes.resize(place); }, "cut at " + what);
    // A crash may leave the file at its full length.
    Damage(
        [&](std::string& bytes) {
          const size_t size = bytes.size();
          bytes.resize(place);
          bytes.resize(size);
        },
        "zeros from " + what);
  }
  Damage([](std::string& bytes) { bytes += "x"; }, "longer");
}

TEST_F(DamageTest, ABitThatFlipsInAPageIsNoticed) {
  for (uint64_t place = info_.PayloadOffset(); place < info_.CommitOffset();
       place += 9001) {
    Damage([&](std::string& bytes) { bytes[place] ^= 16; },
           "bit of byte " + std::to_string(place));
  }
}

TEST_F(KvFolderTest, WhatIsNoTextIsRemovedWhenItIsMet) {
  const KvFileInfo info = TextOf(1100);
  ASSERT_TRUE(Save(info).ok());
  const std::string file = path() + "/" + Names().at(0);
  fs::resize_file(file, 5000);
  std::ofstream(path() + "/text-mine") << "not ours";
  EXPECT_EQ(Common(info), -1);
  EXPECT_EQ(Names(), std::vector<std::string>{"text-mine"});
  // Only a regular file is read: no link is followed, no pipe waited for.
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(Common(info), -1);
  fs::remove(file);
  fs::create_symlink("/dev/zero", file);
  EXPECT_EQ(Common(info), -1);
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(Common(info), -1);
}

// ---- Room ----

TEST_F(KvFolderTest, TheStalestMakesRoom) {
  const uint64_t bytes = TextOf(1100).FileBytes();
  const auto use = [&](int text, int64_t second) {
    const auto found = Folder().Find("a model", TextOf(1100, 1050, text).ids);
    ASSERT_TRUE(found.ok() && found->has_value());
    const timespec times[2] = {{second, 0}, {second, 0}};
    ASSERT_EQ(
        utimensat(AT_FDCWD, (path() + "/" + (*found)->file->name()).c_str(),
                  times, 0),
        0);
  };
  for (const int text : {1, 2, 3}) {
    ASSERT_TRUE(Save(TextOf(1100, 1050, text), GoodDisk(), 3 * bytes).ok());
    use(text, 1000 + text);
  }
  use(1, 2000);
  const auto open = Folder().Find("a model", TextOf(1100, 1050, 2).ids);
  ASSERT_TRUE(Save(TextOf(1100, 1050, 4), GoodDisk(), 3 * bytes).ok());
  EXPECT_EQ(Common(TextOf(1100, 1050, 1)), 1100);
  EXPECT_EQ(Common(TextOf(1100, 1050, 2)), 1050);  // the part that all share
  EXPECT_EQ(Common(TextOf(1100, 1050, 3)), 1100);
  EXPECT_EQ(Common(TextOf(1100, 1050, 4)), 1100);
  EXPECT_TRUE(ReadAll(*(**open).file).ok());  // stays readable while open
  EXPECT_EQ(CodeOf(Save(TextOf(1100, 1040), GoodDisk(), bytes - 1)),
            "disk_full");
  EXPECT_EQ(Names().size(), 3u);
}

// A second reading of all parts of a text in turn finds the first ones, though
// there is no room for all.
TEST_F(KvFolderTest, PartsOfTheSameTextStay) {
  const uint64_t bytes = TextOf(1100).FileBytes() + 9;  // the name's
  const auto part = [](int number, const std::string& name = "a book") {
    KvFileInfo info = TextOf(1100, /*other=*/1, number);
    info.title += '\0' + name;
    return info;
  };
  // Saves it in a folder with room for `most` such texts, of a session that
  // began at `second`.
  const auto save = [&](const KvFileInfo& info, int64_t second,
                        uint64_t most = 3, const std::string& prompt = "") {
    return KvFolder(path(), most * bytes, GoodDisk(), second * 1'000'000'000)
        .Save(info, *PagesForTest(kLayout, kLayers, info.positions()), kGoOn,
              prompt);
  };
  const auto kept = [&](const KvFileInfo& info) {
    return Common(info) == info.positions();
  };
  for (const int number : {1, 2, 3}) {
    ASSERT_TRUE(save(part(number), 0).ok());
  }
  const std::string prompt = "prompt-of-it";
  std::ofstream(path() + "/" + prompt) << "layers";
  EXPECT_EQ(CodeOf(save(part(4), 0, 3, prompt)), "prompt_cache_full");
  EXPECT_FALSE(fs::exists(path() + "/" + prompt));
  EXPECT_EQ(Names().size(), 3u);
  for (const int number : {1, 2, 3}) EXPECT_TRUE(kept(part(number)));
  // A part grows in its place, and is written again in it.
  KvFileInfo grown = part(3);
  grown.ids.push_back(7);
  ASSERT_LE(grown.FileBytes(), bytes + 8);
  EXPECT_TRUE(save(grown, 0).ok());
  EXPECT_FALSE(kept(part(4)));
  EXPECT_TRUE(save(grown, 0).ok());
  EXPECT_EQ(Names().size(), 3u);
  // Texts that have another name or none, or were used before the session
  // began, make room.
  EXPECT_TRUE(save(part(5, "a tale"), 0).ok());
  EXPECT_TRUE(save(TextOf(1100, 1, 6), 0).ok());
  EXPECT_TRUE(save(TextOf(1100, 1, 7), 0).ok());
  EXPECT_TRUE(save(TextOf(1100, 1, 8), 0).ok());
  EXPECT_TRUE(kept(TextOf(1100, 1, 8)));
  EXPECT_FALSE(kept(part(1)));
  const int64_t later = int64_t{1} << 33;
  for (const int number : {1, 2, 3, 4}) {
    EXPECT_TRUE(save(part(number), later).ok());
    EXPECT_TRUE(kept(part(number)));
  }
  EXPECT_FALSE(kept(part(1)));
  EXPECT_EQ(Names().size(), 3u);
  // If there is room for one of two that are written at once, the later goes.
  struct Meanwhile : FaultyDisk {
    int Rename(int folder, const char* from, const char* to) override {
      if (other) std::exchange(other, nullptr)();
      return FaultyDisk::Rename(folder, from, to);
    }
    std::function<void()> other;
  } disk;
  disk.other = [&] { EXPECT_TRUE(save(part(9), 0, 4).ok()); };
  EXPECT_TRUE(KvFolder(path(), 4 * bytes, disk, /*since_ns=*/0)
                  .Save(part(8), *PagesForTest(kLayout, kLayers, 1100), kGoOn)
                  .ok());
  EXPECT_TRUE(kept(part(9)));
  EXPECT_FALSE(kept(part(8)));
  EXPECT_EQ(Names().size(), 4u);
}

// A session that saves nothing still leaves the folder in its bounds.
TEST_F(KvFolderTest, TrimKeepsTheFirstPartsOfASession) {
  const uint64_t bytes = TextOf(1100).FileBytes();
  const auto use = [&](int text, int64_t second) {
    ASSERT_TRUE(Save(TextOf(1100, 1, text)).ok());
    const timespec times[2] = {{second, 0}, {second, 0}};
    const auto found = Folder().Find("a model", TextOf(1100, 1, text).ids);
    utimensat(AT_FDCWD, (path() + "/" + (*found)->file->name()).c_str(), times,
              0);
  };
  const auto kept = [&] {
    std::vector<int> texts;
    for (const int text : {1, 2, 3, 4, 5}) {
      if (Common(TextOf(1100, 1, text)) == 1100) texts.push_back(text);
    }
    return texts;
  };
  const auto trim = [&](uint64_t most) {
    KvFolder(path(), most, GoodDisk(), /*since_ns=*/2'000'000'000'000).Trim();
  };
  use(1, 1002);
  use(2, 1001);  // the stalest
  use(3, 2000);  // the session's first, second and third
  use(4, 2001);
  use(5, 2002);
  trim(5 * bytes);
  EXPECT_EQ(kept().size(), 5u);
  trim(5 * bytes - 1);
  EXPECT_EQ(kept(), (std::vector{1, 3, 4, 5}));
  trim(2 * bytes);
  EXPECT_EQ(kept(), (std::vector{3, 4}));
  trim(bytes - 1);
  EXPECT_TRUE(Names().empty());
  KvFolder(path() + "/none", bytes).Trim();
  EXPECT_FALSE(fs::exists(path() + "/none"));
}

// Other texts are removed only after a text was saved, never for one that may
// still fail.
TEST_F(KvFolderTest, NothingLeavesForATextThatIsNotKept) {
  const uint64_t bytes = TextOf(1100).FileBytes();
  ASSERT_TRUE(Save(TextOf(1100, 1050, 1)).ok());
  ASSERT_TRUE(Save(TextOf(1100, 1060, 2)).ok());
  for (int64_t call = 0;; ++call) {
    FaultyDisk disk;
    disk.counts_reads = false;
    disk.fail_at = call;
    disk.error = ENOSPC;
    const absl::Status status = Save(TextOf(1100, 1070, 3), disk, 2 * bytes);
    if (!disk.failed()) {
      ASSERT_TRUE(status.ok()) << status;
      break;
    }
    EXPECT_EQ(CodeOf(status), "disk_full");
    EXPECT_EQ(Common(TextOf(1100, 1050, 1)), 1100) << "call " << call;
    EXPECT_EQ(Common(TextOf(1100, 1060, 2)), 1100) << "call " << call;
    // If only the sync of its name failed, it is there beside the others.
    const auto found = Folder().Find("a model", TextOf(1100, 1070, 3).ids);
    if ((*found)->common == 1100) Folder().Remove((*found)->file->name());
  }
  EXPECT_EQ(Names().size(), 2u);
  EXPECT_EQ(Common(TextOf(1100, 1070, 3)), 1100);
}

TEST_F(KvFolderTest, AGrownTextTakesThePlaceOfItsBeginnings) {
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  ASSERT_TRUE(Save(TextOf(1200, 1100)).ok());  // begins with the first
  EXPECT_EQ(Names().size(), 1u);
  ASSERT_TRUE(Save(TextOf(1300, 1150)).ok());  // differs from 1150 on
  KvFileInfo other = TextOf(1050);
  other.fingerprint = "another model";
  ASSERT_TRUE(Save(other).ok());
  EXPECT_EQ(Names().size(), 3u);
  const auto open = Folder().Find("a model", TextOf(1300, 1150).ids);
  FaultyDisk disk;
  disk.counts_reads = false;
  disk.fail_at = 3;
  EXPECT_FALSE(Save(TextOf(1400, 1150), disk).ok());
  EXPECT_EQ(Common(TextOf(1400, 1150)), 1300);
  ASSERT_TRUE(Save(TextOf(1400, 1150)).ok());
  EXPECT_EQ(Names().size(), 3u);
  EXPECT_EQ(Common(TextOf(1400, 1150)), 1400);
  EXPECT_EQ(Common(TextOf(1200, 1100)), 1200);
  EXPECT_EQ(Common(other), 1050);
  EXPECT_TRUE(ReadAll(*(**open).file).ok());  // stays readable while open
}

TEST_F(KvFolderTest, AFileThatIsUsedIsNotTheStalest) {
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  const std::string file = path() + "/" + Names().at(0);
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), past, 0), 0);
  EXPECT_EQ(Folder().List()->at(0).used, 1000);
  (**Folder().Find("a model", TextOf(1100).ids)).file->Touch();
  EXPECT_GT(Folder().List()->at(0).used, 1'000'000'000);
}

TEST_F(KvFolderTest, WhatAWriterLeftBehindIsRemoved) {
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  std::ofstream(path() + "/part-1-2.kv") << "half a text";
  std::ofstream(path() + "/part-x.kv") << "not ours";
  const int busy = open((path() + "/part-1-3.kv").c_str(),
                        O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(busy, LOCK_EX), 0);
  ASSERT_TRUE(Save(TextOf(1200)).ok());
  EXPECT_FALSE(fs::exists(path() + "/part-1-2.kv"));
  EXPECT_TRUE(fs::exists(path() + "/part-1-3.kv"));
  EXPECT_TRUE(fs::exists(path() + "/part-x.kv"));
  close(busy);
  EXPECT_EQ(Folder().Clear().value(), 2);
  EXPECT_EQ(Names(), std::vector<std::string>{"part-x.kv"});
}

TEST_F(KvFolderTest, WritersAndReadersShareAFolder) {
  const auto one = [&](int text) {
    for (int i = 0; i < 8; ++i) {
      const KvFileInfo info = TextOf(1100, 1050, text % 2);
      EXPECT_TRUE(Save(info, GoodDisk(), 4 * info.FileBytes()).ok());
      const auto found = Folder().Find(info.fingerprint, info.ids);
      ASSERT_TRUE(found.ok()) << found.status();
      if (found->has_value()) {
        EXPECT_TRUE(ReadAll(*(*found)->file).ok());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int text = 0; text < 4; ++text) threads.emplace_back(one, text);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& name : Names()) EXPECT_EQ(name.substr(0, 5), "text-");
  EXPECT_LE(Names().size(), 2u);
}

TEST_F(KvFolderTest, TextsAreListedAndCleared) {
  EXPECT_TRUE(Folder().List()->empty());
  EXPECT_EQ(Folder().Clear().value(), 0);
  ASSERT_TRUE(Save(TextOf(1100)).ok());
  ASSERT_TRUE(Save(TextOf(1300, 1050)).ok());
  const auto list = *Folder().List();
  ASSERT_EQ(list.size(), 2u);
  for (const KvFolder::Entry& entry : list) {
    ASSERT_TRUE(entry.info.has_value());
    EXPECT_EQ(entry.info->title, "m.gguf");
    EXPECT_EQ(entry.bytes, entry.info->FileBytes());
  }
  fs::resize_file(path() + "/" + list[0].name, 100);
  EXPECT_FALSE(Folder().List()->at(0).info.has_value());
  EXPECT_EQ(Folder().Clear().value(), 2);
  EXPECT_TRUE(Names().empty());
}

}  // namespace
}  // namespace tiercel
