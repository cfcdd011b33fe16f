#include "offload/prompt_cache/prompt_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "offload/prompt_cache/kv_folder.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;

constexpr KvLayout kPromptLayout = {DType::kF16, DType::kQ8_0, /*kv_heads=*/2,
                                    /*head_dim=*/32};
constexpr int kPromptLayers = 5;
constexpr int64_t kRowBytes = 24;
constexpr uint64_t kMuch = uint64_t{1} << 30;

PromptInfo PromptOf(int64_t positions, int64_t begin = 0, int text = 1) {
  PromptInfo info = {.fingerprint = "a model",
                     .layout = kPromptLayout,
                     .layers = kPromptLayers,
                     .begin = begin,
                     .ids = {},
                     .row_bytes = kRowBytes};
  for (int64_t i = 0; i < positions; ++i) {
    info.ids.push_back(static_cast<int32_t>(i < 1030 ? i : -text));
  }
  return info;
}

std::byte ByteOf(int64_t i, int layer, int64_t page) {
  return static_cast<std::byte>((i * 31 + page * 7 + layer * 13 + 1) % 251);
}

std::vector<std::byte> PageFor(int layer, int64_t page) {
  std::vector<std::byte> bytes(static_cast<size_t>(kPromptLayout.PageBytes()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = ByteOf(static_cast<int64_t>(i), layer, page);
  }
  return bytes;
}

std::vector<std::byte> StateFor(const PromptInfo& info, int layer) {
  std::vector<std::byte> state(static_cast<size_t>(info.StateBytes()));
  for (size_t i = 0; i < state.size(); ++i) {
    state[i] = ByteOf(static_cast<int64_t>(i), layer, /*page=*/-3);
  }
  return state;
}

// A layer of the prompt as a store would hold it.
std::unique_ptr<HeldLayer> HeldFor(const PromptInfo& info, int layer,
                                   bool with_state = true) {
  auto pool =
      std::make_shared<PagePool>(info.layout, info.layers, /*slots=*/64);
  const auto end = static_cast<int64_t>(info.ids.size());
  std::vector<int64_t> slots;
  std::vector<std::byte> last;
  for (int64_t page = info.FirstPage(); page < info.EndPage(); ++page) {
    const std::vector<std::byte> bytes = PageFor(layer, page);
    if ((page + 1) * kPageTokens > end) {
      last = bytes;
    } else {
      slots.push_back(*pool->Take());
      std::copy(bytes.begin(), bytes.end(),
                pool->HostPage(layer, slots.back()));
    }
  }
  const auto region = std::make_shared<HostRegion>(
      *HostRegion::Reserve(static_cast<size_t>(info.StateBytes())));
  const std::vector<std::byte> state = StateFor(info, layer);
  std::copy(state.begin(), state.end(), region->data());
  return std::make_unique<HeldLayer>(std::move(pool), layer, SlotsOf(slots),
                                     std::move(last), region,
                                     with_state ? info.StateBytes() : 0);
}

class PromptFileTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/texts"; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    if (!fs::exists(path())) return names;
    for (const auto& entry : fs::directory_iterator(path())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  absl::StatusOr<std::unique_ptr<PromptFile>> Open(const PromptInfo& info,
                                                   DiskCalls& disk = GoodDisk(),
                                                   uint64_t most = kMuch,
                                                   bool anew = false) {
    return KvFolder(path(), most, disk).OpenPrompt(info, anew);
  }
  // Writes the unfinished layers before `end`, one by one.
  absl::Status Write(const PromptInfo& info, int end,
                     DiskCalls& disk = GoodDisk(), uint64_t most = kMuch) {
    const auto file = Open(info, disk, most);
    if (!file.ok()) return file.status();
    if (*file == nullptr) return InternalError("taken", "another has it");
    for (int layer = (*file)->layers(); layer < end; ++layer) {
      if (absl::Status s = (*file)->Write(*HeldFor(info, layer)); !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }
  // Writes the layers [first, last] together.
  absl::Status WriteTogether(const PromptInfo& info, int first, int last,
                             DiskCalls& disk = GoodDisk()) {
    const auto file = Open(info, disk);
    if (!file.ok()) return file.status();
    std::vector<std::unique_ptr<HeldLayer>> held;
    std::vector<const HeldLayer*> layers;
    for (int layer = first; layer <= last; ++layer) {
      held.push_back(HeldFor(info, layer, layer == last));
      layers.push_back(held.back().get());
    }
    return (*file)->Write(layers);
  }
  // Reads the file of `info`, and checks all that it gives. Returns the number
  // of layers.
  absl::StatusOr<int> Read(const PromptInfo& info,
                           DiskCalls& disk = GoodDisk()) {
    const auto file = Open(info, disk);
    if (!file.ok()) return file.status();
    if (*file == nullptr) return InternalError("taken", "another has it");
    std::map<std::pair<int, int64_t>, int> seen;
    std::vector<std::byte> state(static_cast<size_t>(info.StateBytes()));
    DiskUse use;
    const absl::StatusOr<int> layers = (*file)->Read(
        [&](int layer, int64_t page, const std::byte* bytes) {
          const std::vector<std::byte> expected = PageFor(layer, page);
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes));
          ++seen[{layer, page}];
          return absl::OkStatus();
        },
        [&](int64_t offset, const std::byte* from, size_t count) {
          std::copy_n(from, count, state.data() + offset);
          return absl::OkStatus();
        },
        kGoOn, &use);
    if (!layers.ok()) return layers;
    EXPECT_EQ(std::ssize(seen), *layers * (info.EndPage() - info.FirstPage()));
    if (*layers > 0) {
      EXPECT_EQ(state, StateFor(info, *layers - 1));
      EXPECT_EQ(
          use.read_bytes - use.state_bytes,
          static_cast<uint64_t>(use.read_pages * kPromptLayout.PageBytes()));
      EXPECT_GE(use.state_bytes, state.size());
    }
    return layers;
  }

  FolderForTest folder_;
};

TEST_F(PromptFileTest, WhatIsFinishedIsThereForTheSamePrompt) {
  for (const PromptInfo& info :
       {PromptOf(1100), PromptOf(1280), PromptOf(1300, 200)}) {
    EXPECT_EQ(*Read(info), 0);
    for (int layers = 1; layers < kPromptLayers; ++layers) {
      ASSERT_TRUE(Write(info, layers, SystemDisk()).ok());
      EXPECT_EQ(*Read(info), layers);
    }
    struct stat status;
    ASSERT_EQ(stat((path() + "/" + Names().at(0)).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(static_cast<uint64_t>(status.st_size), info.FileBytes());
    EXPECT_EQ(Names().size(), 1u);
    KvFolder(path(), kMuch).Clear().value();
    EXPECT_EQ(*Read(info), 0);
    KvFolder(path(), kMuch).Clear().value();
  }
}

TEST_F(PromptFileTest, AnyOtherPromptBeginsAnew) {
  const PromptInfo info = PromptOf(1300, 200);
  const std::function<void(PromptInfo&)> changes[] = {
      [](PromptInfo& i) { i.fingerprint = "b model"; },
      [](PromptInfo& i) { i.begin = 201; },
      [](PromptInfo& i) { i.ids.back() = 5; },
      [](PromptInfo& i) { i.ids[3] = 5; },
      [](PromptInfo& i) { i.row_bytes = 28; },
      [](PromptInfo& i) { i.layers = 6; },
      [](PromptInfo& i) { i.layout.type_k = DType::kBF16; }};
  for (const auto& change : changes) {
    ASSERT_TRUE(Write(info, 3).ok());
    PromptInfo other = info;
    change(other);
    EXPECT_EQ(Open(other).value()->layers(), 0);
    // If another prompt's file has its name, the contents are dropped.
    ASSERT_TRUE(Write(info, 3).ok());
    const std::string ours = Open(info).value()->name();
    const std::string theirs = Open(other).value()->name();
    ASSERT_TRUE(Write(info, 3).ok());
    fs::rename(path() + "/" + ours, path() + "/" + theirs);
    EXPECT_EQ(Open(other).value()->layers(), 0);
    KvFolder(path(), kMuch).Clear().value();
  }
  ASSERT_TRUE(Write(info, 3).ok());
  EXPECT_EQ(Open(info, GoodDisk(), kMuch, /*anew=*/true).value()->layers(), 0);
  EXPECT_EQ(*Read(info), 0);
}

TEST_F(PromptFileTest, OneReaderAtATimeHasIt) {
  const PromptInfo info = PromptOf(1100);
  auto first = *Open(info);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(*Open(info), nullptr);
  EXPECT_NE(*Open(PromptOf(1200)), nullptr);
  // Clear does not wait for a lock.
  EXPECT_EQ(KvFolder(path(), kMuch).Clear().value(), 2);
  EXPECT_TRUE(first->Write(*HeldFor(info, 0)).ok());
  EXPECT_EQ(*Read(info), 0);
  first.reset();
  EXPECT_NE(*Open(info), nullptr);
}

TEST_F(PromptFileTest, WhatIsNoFileOfOursIsLeftAlone) {
  const PromptInfo info = PromptOf(1100);
  const std::string file = path() + "/" + Open(info).value()->name();
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(CodeOf(Open(info).status()), "io_error");
  fs::remove(file);
  fs::create_symlink(folder_.path() + "/elsewhere", file);
  EXPECT_EQ(CodeOf(Open(info).status()), "io_error");
  EXPECT_FALSE(fs::exists(folder_.path() + "/elsewhere"));
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(CodeOf(Open(info).status()), "io_error");
}

// ---- Crashes ----

// A file that ends anywhere, or is 0 from anywhere on, gives fewer layers, but
// never a wrong one.
TEST_F(PromptFileTest, AFileThatIsTornGivesWhatIsWhole) {
  const PromptInfo info = PromptOf(1100);
  ASSERT_TRUE(Write(info, 4).ok());
  const std::string file = path() + "/" + Names().at(0);
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  // The file is cut at borders of records, states and pages, and within them.
  const auto page = static_cast<size_t>(kPromptLayout.PageBytes());
  std::vector<size_t> places = {0, 1, 87, 88, 100, whole.size() - 1};
  for (size_t at = 4096; at < whole.size(); at += 4096) places.push_back(at);
  for (size_t at = whole.size() - 4 * 9 * page; at < whole.size(); at += page) {
    places.push_back(at);
  }
  const size_t records = 8192;  // after a head of 4.6 KB
  const size_t record = (4 + 9 + 1) * sizeof(uint64_t);
  for (size_t layer = 0; layer <= 4; ++layer) {
    for (const size_t at : {0, 1, 50}) {
      places.push_back(records + layer * record + at);
    }
  }
  for (const size_t place : places) {
    for (const bool shorter : {true, false}) {
      std::string torn = whole.substr(0, place);
      if (!shorter) torn.resize(whole.size());
      std::ofstream(file, std::ios::binary | std::ios::trunc) << torn;
      const absl::StatusOr<int> layers = Read(info);
      if (layers.ok()) {
        EXPECT_LE(*layers, place < records + record ? 0 : 4) << place;
        if (shorter) {
          EXPECT_EQ(*layers, 0) << place;
        }
      } else {
        EXPECT_EQ(CodeOf(layers.status()), "text_damaged") << place;
      }
    }
  }
  // If one record is torn, the layers before it count, but only the last two
  // layers' states are there.
  for (size_t layer = 0; layer < 4; ++layer) {
    std::string torn = whole;
    torn[records + layer * record + 40] ^= 1;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << torn;
    EXPECT_EQ(*Read(info), layer == 3 ? 3 : 0) << layer;
  }
}

// If power fails while states are written, the previous ones are whole.
TEST_F(PromptFileTest, StatesTakeTurns) {
  const PromptInfo info = PromptOf(1100);
  const uint64_t states = 12288;  // after four records
  for (const bool both : {false, true}) {
    ASSERT_TRUE(Write(info, 4).ok());
    std::fstream file(path() + "/" + Names().at(0),
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(states + 28672 + 1000);  // in the second place
    file.put('x').put('y');
    if (both) {
      file.seekp(states + 1000);
      file.put('x').put('y');
    }
    file.close();
    EXPECT_EQ(*Read(info), both ? 0 : 3);
  }
}

TEST_F(PromptFileTest, ABitThatFlipsIsNoticed) {
  const PromptInfo info = PromptOf(1100);
  ASSERT_TRUE(Write(info, 4).ok());
  const std::string file = path() + "/" + Names().at(0);
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t place = 3; place < whole.size(); place += 4999) {
    std::string flipped = whole;
    flipped[place] ^= 64;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << flipped;
    const absl::StatusOr<int> layers = Read(info);
    EXPECT_TRUE(layers.ok() || CodeOf(layers.status()) == "text_damaged")
        << place;
  }
}

// A process that ends at any call leaves all layers that it has written before.
TEST_F(PromptFileTest, AProcessThatEndsLosesNoLayerThatWasWritten) {
  struct WatchedDisk : FaultyDisk {
    std::function<void()> before_write = [] {};
    ssize_t Write(int file, const std::byte* from, size_t bytes,
                  uint64_t offset) override {
      before_write();
      return FaultyDisk::Write(file, from, bytes, offset);
    }
  } disk;
  disk.at_once = 5000;
  const PromptInfo info = PromptOf(1100);
  const std::string left = folder_.path() + "/left";
  int written = 0;
  int calls = 0;
  const std::string ours = path();
  disk.before_write = [&] {
    if (++calls % 5 != 0) return;
    fs::remove_all(left);
    fs::create_directory(left);
    fs::permissions(left, fs::perms::owner_all);
    for (const std::string& name : Names()) {
      fs::copy_file(ours + "/" + name, left + "/" + name);
    }
    const auto file = KvFolder(left, kMuch, GoodDisk()).OpenPrompt(info, false);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ((*file)->layers(), written);
    std::vector<std::byte> state(static_cast<size_t>(info.StateBytes()));
    DiskUse use;
    const auto layers = (*file)->Read(
        [&](int layer, int64_t page, const std::byte* bytes) {
          const std::vector<std::byte> expected = PageFor(layer, page);
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes));
          return absl::OkStatus();
        },
        [&](int64_t offset, const std::byte* from, size_t count) {
          std::copy_n(from, count, state.data() + offset);
          return absl::OkStatus();
        },
        kGoOn, &use);
    ASSERT_TRUE(layers.ok()) << layers.status();
    EXPECT_EQ(*layers, written);
    if (written > 0) {
      EXPECT_EQ(state, StateFor(info, written - 1));
    }
  };
  {
    const auto file = Open(info, disk);
    ASSERT_TRUE(file.ok());
    for (int layer = 0; layer + 1 < kPromptLayers; ++layer) {
      ASSERT_TRUE((*file)->Write(*HeldFor(info, layer)).ok());
      ++written;
    }
  }
  EXPECT_GT(calls, 100);
}

// Layers that were written together are all there, or none is.
TEST_F(PromptFileTest, LayersTogetherHaveTheStatesOfTheLast) {
  const PromptInfo info = PromptOf(1100);
  ASSERT_TRUE(WriteTogether(info, 0, 2).ok());
  EXPECT_EQ(*Read(info), 3);
  ASSERT_TRUE(WriteTogether(info, 3, 3).ok());
  EXPECT_EQ(*Read(info), 4);
  // Power fails at each call in turn.
  for (int64_t call = 0;; ++call) {
    KvFolder(path(), kMuch).Clear().value();
    ASSERT_TRUE(WriteTogether(info, 0, 0).ok());
    FaultyDisk disk;
    disk.counts_reads = false;
    disk.fail_at = call;
    const absl::Status status = WriteTogether(info, 1, 3, disk);
    const int layers = *Read(info);
    EXPECT_TRUE(layers == 4 || (layers == 1 && !status.ok())) << layers;
    if (disk.failed()) continue;
    EXPECT_GT(call, 5);
    break;
  }
  std::fstream file(path() + "/" + Names().at(0),
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(12288 + 28672 + 1000);  // in the states of layer 3
  file.put('x').put('y');
  file.close();
  EXPECT_EQ(*Read(info), 1);
  // An even number would write the states over the previous ones.
  const absl::Status even = WriteTogether(info, 1, 2);
  EXPECT_EQ(CodeOf(even), "internal");
  EXPECT_NE(even.message().find("2 layers from 1"), std::string::npos) << even;
}

// ---- A disk that fails ----

TEST_F(PromptFileTest, AWriteThatFailsIsAnErrorAndLosesNoLayerBefore) {
  const PromptInfo info = PromptOf(1100);
  for (const int error : {ENOSPC, EIO}) {
    for (const int64_t more : {0, 1 << 30}) {
      for (int64_t call = 0;; ++call) {
        FaultyDisk disk;
        disk.counts_reads = false;
        disk.fail_at = call;
        disk.more = more;
        disk.error = error;
        const absl::Status status = Write(info, 4, disk);
        if (!disk.failed()) {
          EXPECT_TRUE(status.ok()) << status;
          EXPECT_GT(call, 15);
          EXPECT_EQ(*Read(info), 4);
          break;
        }
        EXPECT_EQ(CodeOf(status), error == EIO ? "io_error" : "disk_full");
        const absl::StatusOr<int> layers = Read(info);
        ASSERT_TRUE(layers.ok()) << layers.status();
        if (call < 4) {  // no record was written yet
          EXPECT_EQ(*layers, 0);
        }
        EXPECT_LE(*layers, 4);
        KvFolder(path(), kMuch).Clear().value();
      }
      KvFolder(path(), kMuch).Clear().value();
    }
  }
}

TEST_F(PromptFileTest, ReadsThatFailAreErrors) {
  const PromptInfo info = PromptOf(1100);
  for (int64_t call = 0;; ++call) {
    ASSERT_TRUE(Write(info, 3).ok());
    FaultyDisk disk;
    disk.counts_writes = false;
    disk.fail_at = call;
    disk.at_once = static_cast<size_t>(kPromptLayout.PageBytes());
    const absl::StatusOr<int> layers = Read(info, disk);
    if (!disk.failed()) {
      EXPECT_EQ(*layers, 3);
      EXPECT_GT(call, 20);
      break;
    }
    if (layers.ok()) {
      EXPECT_EQ(*layers, 0);  // its head could not be read
    } else {
      EXPECT_EQ(CodeOf(layers.status()), "io_error") << call;
    }
  }
}

// ---- Room ----

class PromptRoomTest : public PromptFileTest {
 protected:
  static KvFileInfo TextOf(int text) {
    KvFileInfo info;
    info.fingerprint = "a model";
    info.title = "m.gguf";
    info.layout = kPromptLayout;
    info.layers = kPromptLayers;
    info.ids = PromptOf(1100, 0, text).ids;
    return info;
  }
  absl::Status Save(const KvFileInfo& info, uint64_t most = kMuch,
                    const std::string& prompt = "") {
    return KvFolder(path(), most, GoodDisk())
        .Save(info,
              *PagesForTest(kPromptLayout, kPromptLayers, info.positions()),
              kGoOn, prompt);
  }
  void UsedAt(const std::string& name, int64_t second) {
    const timespec times[2] = {{second, 0}, {second, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (path() + "/" + name).c_str(), times, 0), 0);
  }
  bool IsThere(const std::string& name) const {
    return fs::exists(path() + "/" + name);
  }
};

// Prompts that are being written are not counted. Those that were left are, and
// the least recently used is removed first.
TEST_F(PromptRoomTest, WhatWasLeftMakesRoom) {
  const uint64_t bytes = PromptOf(1100).FileBytes();
  const uint64_t text_bytes = TextOf(9).FileBytes();
  ASSERT_TRUE(Save(TextOf(9)).ok());
  const std::string text = Names().at(0);
  const uint64_t most = 3 * bytes + text_bytes;
  std::vector<std::string> names;
  for (const int number : {1, 2, 3}) {
    const PromptInfo info = PromptOf(1100, 0, number);
    ASSERT_TRUE(Write(info, 1, GoodDisk(), most).ok());
    names.push_back(Open(info).value()->name());
    UsedAt(names.back(), 1000 + number);
  }
  UsedAt(text, 1500);
  UsedAt(names[0], 2000);
  ASSERT_TRUE(Write(PromptOf(1100, 0, 4), 1, GoodDisk(), most).ok());
  EXPECT_EQ(Names().size(), 5u);  // the fourth was being written
  const auto busy = *Open(PromptOf(1100, 0, 2), GoodDisk(), most);
  EXPECT_EQ(Names().size(), 5u);  // and so is this one
  const auto fifth = *Open(PromptOf(1100, 0, 5), GoodDisk(), most);
  EXPECT_EQ(Names().size(), 6u);
  const auto sixth =
      *Open(PromptOf(1100, 0, 6), GoodDisk(), text_bytes + bytes);
  EXPECT_FALSE(IsThere(names[2]));
  EXPECT_FALSE(IsThere(text));
  EXPECT_TRUE(IsThere(names[1]));  // `busy` has it
  EXPECT_TRUE(IsThere(names[0]));
  EXPECT_EQ(Names().size(), 5u);
  // A prompt that is larger than all files may be is not begun.
  EXPECT_EQ(*Open(PromptOf(1100), GoodDisk(), bytes - 1), nullptr);
}

// Texts that fill the folder make room for prompts that were left: the least
// recently used of both kinds go, and not all prompts for each new one.
TEST_F(PromptRoomTest, AFullFolderKeepsPrompts) {
  uint64_t most = 0;
  for (const int text : {1, 2, 3, 4}) {
    ASSERT_TRUE(Save(TextOf(text)).ok());
    most += TextOf(text).FileBytes();
  }
  int64_t second = 1000;
  for (const std::string& name : Names()) UsedAt(name, second++);
  for (const int number : {5, 6, 7}) {
    const PromptInfo info = PromptOf(1100, 0, number);
    ASSERT_TRUE(Write(info, 1, GoodDisk(), most).ok());
    UsedAt(Open(info).value()->name(), 2000 + number);
  }
  const auto last = *Open(PromptOf(1100, 0, 8), GoodDisk(), most);
  for (const int number : {5, 6, 7}) {
    EXPECT_EQ(Open(PromptOf(1100, 0, number)).value()->layers(), 1) << number;
  }
  EXPECT_EQ(Names().size(), 4u + 1u);
}

// A child that a process made by fork() may outlive it, and does not hold its
// prompt.
TEST_F(PromptRoomTest, AForkedProcessHasNoneOfItsFiles) {
  const PromptInfo info = PromptOf(1100);
  int lives[2];
  int says[2];
  ASSERT_EQ(pipe(lives), 0);
  ASSERT_EQ(pipe(says), 0);
  const pid_t reader = fork();
  ASSERT_GE(reader, 0);
  if (reader == 0) {
    const auto file = Open(info);
    const pid_t forked = fork();
    if (forked != 0) _exit(file.ok() && *file != nullptr && forked > 0 ? 0 : 1);
    close(lives[1]);
    const std::string folder = fs::canonical(path());
    char has = 'n';
    for (const auto& open : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string name = fs::read_symlink(open, gone);
      if (name.starts_with(folder)) has = 'y';
    }
    const bool said = write(says[1], &has, 1) == 1;
    _exit(said && read(lives[0], &has, 1) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(reader, &status, 0), reader);
  EXPECT_EQ(status, 0);
  char has = '?';
  EXPECT_EQ(read(says[0], &has, 1), 1);
  EXPECT_EQ(has, 'n');
  const auto opened = Open(info);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_NE(*opened, nullptr);
  for (const int end : {lives[0], lives[1], says[0], says[1]}) close(end);
}

TEST_F(PromptRoomTest, AFileThatIsRemovedBeforeItIsLockedIsMadeAgain) {
  fs::create_directory(path());
  RemovingDisk disk(path());
  const PromptInfo info = PromptOf(1100);
  EXPECT_TRUE(Write(info, 1, disk).ok());
  EXPECT_TRUE(disk.has_removed());
  EXPECT_EQ(*Read(info), 1);
}

TEST_F(PromptRoomTest, AFileWithoutRoomIsNotLeft) {
  FaultyDisk disk;
  disk.counts_reads = false;
  disk.fail_at = 1;  // the file is made, and has no room
  disk.error = ENOSPC;
  EXPECT_EQ(CodeOf(Open(PromptOf(1100), disk).status()), "disk_full");
  EXPECT_TRUE(Names().empty());
}

TEST_F(PromptRoomTest, AFileOfAnotherUserIsLeftAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const PromptInfo info = PromptOf(1100);
  ASSERT_TRUE(Write(info, 1).ok());
  const std::string name = path() + "/" + Names().at(0);
  EXPECT_EQ(chown(name.c_str(), /*owner=*/1, /*group=*/1), 0);
  EXPECT_EQ(CodeOf(Open(info).status()), "io_error");
  EXPECT_TRUE(fs::exists(name));
}

// Files that others are writing evict no texts.
TEST_F(PromptRoomTest, WhatOthersWriteTakesNoPlaceOfTexts) {
  ASSERT_TRUE(Save(TextOf(1)).ok());
  const std::string part = path() + "/part-1-1.kv";
  const int writer = open(part.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  fs::resize_file(part, 10 * TextOf(1).FileBytes());
  const auto busy = *Open(PromptOf(1100, 0, 3));
  ASSERT_TRUE(Save(TextOf(2), 2 * TextOf(1).FileBytes()).ok());
  EXPECT_EQ(Names().size(), 4u);
  close(writer);
}

TEST_F(PromptRoomTest, ATextTakesThePlaceOfItsPrompt) {
  const PromptInfo info = PromptOf(1100);
  ASSERT_TRUE(Write(info, 4).ok());
  const auto file = *Open(info);
  ASSERT_TRUE(Save(TextOf(1), kMuch, file->name()).ok());
  EXPECT_FALSE(IsThere(file->name()));
  // An unfinished prompt is evicted for a text, as a text is.
  ASSERT_TRUE(Write(PromptOf(1300, 0, 2), 4).ok());
  ASSERT_TRUE(Save(TextOf(3), TextOf(3).FileBytes()).ok());
  EXPECT_EQ(Names().size(), 1u);
  EXPECT_EQ(KvFolder(path(), kMuch).List()->at(0).info->ids, TextOf(3).ids);
}

// The prompts begin with 1,030 of the text's 1,100 tokens, which save them
// 1,030 positions times 5 layers.
TEST_F(PromptRoomTest, ATextTakesThePlaceOfPromptsThatItServes) {
  const auto stays = [this](const PromptInfo& info, int layers) {
    KvFolder(path(), kMuch).Clear().value();
    EXPECT_TRUE(Write(info, layers).ok());
    const std::string name = Names().at(0);
    EXPECT_TRUE(Save(TextOf(1)).ok());
    if (!IsThere(name)) return false;
    EXPECT_EQ(Open(info).value()->layers(), layers);
    return true;
  };
  EXPECT_FALSE(stays(PromptOf(1100, 0, 2), 0));
  EXPECT_FALSE(stays(PromptOf(1100, 0, 2), 4));
  EXPECT_FALSE(stays(PromptOf(1287, 0, 2), 4));
  EXPECT_TRUE(stays(PromptOf(1288, 0, 2), 4));
  EXPECT_FALSE(stays(PromptOf(1288, 0, 2), 3));
  // All of its positions are in the text.
  EXPECT_FALSE(stays(PromptOf(1100, 0, 1), 4));
  // It begins after 900 positions: 1,030 * 5 against 900 * 5 + 388 * 2.
  EXPECT_TRUE(stays(PromptOf(1288, 900, 2), 2));
  EXPECT_FALSE(stays(PromptOf(1288, 900, 2), 1));
  EXPECT_TRUE(stays(PromptOf(1288, 1031, 2), 0));  // the text has too few
  PromptInfo other = PromptOf(1100, 0, 2);
  other.fingerprint = "another model";
  EXPECT_TRUE(stays(other, 4));
  other = PromptOf(1100, 0, 2);
  other.ids[0] = 7;
  EXPECT_TRUE(stays(other, 4));
  // A prompt that is locked stays.
  KvFolder(path(), kMuch).Clear().value();
  const auto busy = *Open(PromptOf(1100, 0, 2));
  ASSERT_TRUE(Save(TextOf(1)).ok());
  EXPECT_TRUE(IsThere(busy->name()));
}

TEST_F(PromptRoomTest, WhatIsFinishedIsFoundByItsTokens) {
  const PromptInfo info = PromptOf(1300, 200);
  const auto found = [this](const PromptInfo& of) {
    return KvFolder(path(), kMuch, GoodDisk())
        .FindPrompt(of.fingerprint, of.ids);
  };
  EXPECT_FALSE(found(info).has_value());
  ASSERT_TRUE(Write(info, 3).ok());
  const auto finished = found(info);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->layers, 3);
  EXPECT_EQ(finished->info.begin, 200);
  EXPECT_EQ(finished->Saves(), 200 * kPromptLayers + 1100 * 3);
  EXPECT_FALSE(found(PromptOf(1299, 200)).has_value());
  const std::string name = Names().at(0);
  {
    const auto busy = *Open(info);
    EXPECT_FALSE(found(info).has_value());
  }
  // A file with this name is found only if its head is right.
  const uint64_t head = 88 + info.fingerprint.size() + 4 * 1300 + 8;
  std::fstream file(path() + "/" + name,
                    std::ios::binary | std::ios::in | std::ios::out);
  for (uint64_t place = 0; place < head; place += place < 100 ? 1 : 37) {
    const auto at = static_cast<std::streamoff>(place);
    const int was = file.seekg(at).get();
    for (const int bit : {1, 64}) {
      file.seekp(at).put(static_cast<char>(was ^ bit)).flush();
      EXPECT_FALSE(found(info).has_value()) << place;
    }
    file.seekp(at).put(static_cast<char>(was)).flush();
  }
  EXPECT_TRUE(found(info).has_value());
  fs::rename(path() + "/" + name, path() + "/elsewhere");
  fs::create_symlink(path() + "/elsewhere", path() + "/" + name);
  EXPECT_FALSE(found(info).has_value());
}

// ---- A file system without locks ----

class NoLocksTest : public PromptRoomTest,
                    public testing::WithParamInterface<int> {
 protected:
  struct NoLocks : FaultyDisk {
    int TryLock(int /*file*/, int /*operation*/) override {
      errno = error;
      return -1;
    }
  };
  NoLocksTest() { disk_.error = GetParam(); }

  NoLocks disk_;
};

TEST_P(NoLocksTest, PromptsAndTextsAreKeptAndMakeRoom) {
  const PromptInfo info = PromptOf(1100);
  ASSERT_TRUE(Write(info, 3, disk_).ok());
  const absl::StatusOr<int> layers = Read(info, disk_);
  ASSERT_TRUE(layers.ok()) << layers.status();
  EXPECT_EQ(*layers, 3);
  const KvFolder folder(path(), TextOf(2).FileBytes(), disk_);
  EXPECT_TRUE(folder.FindPrompt(info.fingerprint, info.ids).has_value());
  const auto pages = PagesForTest(kPromptLayout, kPromptLayers, 1100);
  ASSERT_TRUE(folder.Save(TextOf(2), *pages, kGoOn).ok());
  EXPECT_EQ(Names().size(), 1u);
  EXPECT_EQ(folder.List()->at(0).info->ids, TextOf(2).ids);
}

// Without locks a part may be another writer's, so that only Clear removes it.
TEST_P(NoLocksTest, WhatAWriterLeftBehindIsClearedAlone) {
  ASSERT_TRUE(Save(TextOf(1)).ok());
  std::ofstream(path() + "/part-1-2.kv") << "half a text";
  const KvFolder folder(path(), kMuch, disk_);
  const auto pages = PagesForTest(kPromptLayout, kPromptLayers, 1100);
  ASSERT_TRUE(folder.Save(TextOf(2), *pages, kGoOn).ok());
  EXPECT_TRUE(IsThere("part-1-2.kv"));
  EXPECT_EQ(folder.Clear().value(), 3);
  EXPECT_TRUE(Names().empty());
}

INSTANTIATE_TEST_SUITE_P(Errors, NoLocksTest,
                         testing::Values(ENOLCK, ENOTSUP, ENOSYS));

// ---- All files ----

TEST_F(PromptRoomTest, PromptsAreListedAndCleared) {
  ASSERT_TRUE(Save(TextOf(2)).ok());
  ASSERT_TRUE(Write(PromptOf(1100), 2).ok());
  const auto list = *KvFolder(path(), kMuch).List();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_FALSE(list[0].info.has_value());
  EXPECT_EQ(list[0].bytes, PromptOf(1100).FileBytes());
  EXPECT_TRUE(list[1].info.has_value());
  EXPECT_EQ(KvFolder(path(), kMuch).Clear().value(), 2);
  EXPECT_TRUE(Names().empty());
}

}  // namespace
}  // namespace tiercel
