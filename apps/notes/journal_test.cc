#include "apps/notes/journal.h"

#include <utility>

#include "gtest/gtest.h"

namespace tiercel::reader {
namespace {

Journal Example() {
  Journal journal("key", "A Book\xff");
  journal.Add(0, 0, 11,
              {"first\n\"part\"",
               {1, 2},
               false,
               {{"first\n", ""}, {"\"part\"", "so\xff"}}});
  journal.Add(1, 0, 0xffffffffffffffffu, {"é", {}, true});
  return journal;
}

TEST(JournalTest, ComesBackAsItWas) {
  const auto back = Journal::Parse(Example().Serialize(), "key");
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->size(), 2u);
  const Writing* first = back->Find(0, 0, 11);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->text, "first\n\"part\"");
  EXPECT_EQ(first->tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_FALSE(first->cut);
  ASSERT_EQ(first->pieces.size(), 2u);
  EXPECT_EQ(first->pieces[0].text, "first\n");
  EXPECT_EQ(first->pieces[1].thought, "so\ufffd");
  const Writing* second = back->Find(1, 0, 0xffffffffffffffffu);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->text, "é");
  EXPECT_TRUE(second->cut);
  EXPECT_EQ(back->Serialize(), Example().Serialize());
  const auto head = HeadOf(Example().Serialize());
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->parts, 2u);
  EXPECT_EQ(head->name, "A Book\ufffd");
}

TEST(JournalTest, AnotherAddsWhatItHasBeside) {
  Journal journal = Example();
  Journal other("key");
  other.Add(0, 0, 99, {"another", {}, false});
  other.Add(0, 1, 12, {"second", {}, false});
  journal.Merge(std::move(other));
  EXPECT_EQ(journal.size(), 3u);
  EXPECT_NE(journal.Find(0, 0, 11), nullptr);
  ASSERT_NE(journal.Find(0, 1, 12), nullptr);
  EXPECT_EQ(journal.Find(0, 1, 12)->text, "second");
}

TEST(JournalTest, LevelsAreCounted) {
  Journal journal("key");
  for (const size_t index : {0, 1, 7}) journal.Add(1, index, 1, {});
  journal.Add(2, 0, 1, {});
  EXPECT_EQ(journal.CountAt(0), 0u);
  EXPECT_EQ(journal.CountAt(1), 3u);
  EXPECT_EQ(journal.CountAt(2), 1u);
  EXPECT_EQ(journal.CountAt(3), 0u);
}

TEST(JournalTest, APartOfAnotherPromptIsNone) {
  EXPECT_EQ(Example().Find(0, 0, 12), nullptr);
  EXPECT_EQ(Example().Find(0, 1, 11), nullptr);
  EXPECT_EQ(Example().Find(1, 0, 11), nullptr);
}

TEST(JournalTest, WhatIsForeignIsNotRead) {
  const std::string bytes = Example().Serialize();
  EXPECT_FALSE(Journal::Parse(bytes, "another key").has_value());
  EXPECT_FALSE(Journal::Parse("", "key").has_value());
  EXPECT_FALSE(Journal::Parse("{}", "key").has_value());
  // These files are whole, but no journals.
  for (const std::string body :
       {"{}\n", "[]\n", "null\n", "{\"key\":\"key\",\"parts\":{}}\n",
        "{\"key\":\"key\",\"parts\":[{\"level\":0}]}\n",
        "{\"key\":\"key\",\"parts\":[{\"level\":\"0\",\"index\":0,\"prompt\":0,"
        "\"text\":\"\",\"tokens\":[],\"cut\":false}]}\n"}) {
    const std::string file =
        bytes.substr(0, 18) + Hex(Fingerprint(body)) + "\n" + body;
    EXPECT_FALSE(Journal::Parse(file, "key").has_value()) << body;
  }
}

TEST(JournalTest, DamageAnywhereIsSeen) {
  const std::string bytes = Example().Serialize();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 1;
    EXPECT_FALSE(Journal::Parse(damaged, "key").has_value()) << i;
    EXPECT_FALSE(Journal::Parse(bytes.substr(0, i), "key").has_value()) << i;
    EXPECT_FALSE(HeadOf(damaged).has_value());
  }
}

TEST(JournalTest, TextIsUtf8BeforeItIsWritten) {
  Journal journal("key");
  journal.Add(0, 0, 1, {"cut \xE2\x80", {}, false});
  EXPECT_EQ(journal.Find(0, 0, 1)->text, "cut \uFFFD");
  const auto back = Journal::Parse(journal.Serialize(), "key");
  EXPECT_EQ(back->Find(0, 0, 1)->text, "cut \uFFFD");
}

TEST(JournalTest, FingerprintsAreFnv1a) {
  EXPECT_EQ(Hex(Fingerprint("")), "cbf29ce484222325");
  EXPECT_EQ(Hex(Fingerprint("foobar")), "85944171f73967e8");
}

}  // namespace
}  // namespace tiercel::reader
