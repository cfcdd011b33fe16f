#include "apps/terminal/word_wrap.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

// Wraps a text that comes in pieces of `bytes` bytes, but whole characters.
std::string Wrapped(const std::string& text, int columns, size_t bytes = 1) {
  WordWrap wrap;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + bytes, text.size());
    while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
    out += wrap.Push(text.substr(at, end - at), columns);
    at = end;
  }
  return out + wrap.Finish(columns);
}

TEST(WordWrapTest, BreaksBetweenWords) {
  const std::string text = "the falcon saw the sea  and\nthe sea.";
  for (size_t bytes = 1; bytes < 9; ++bytes) {
    EXPECT_EQ(Wrapped(text, 10, bytes),
              "the falcon\nsaw the\nsea  and\nthe sea.");
    EXPECT_EQ(Wrapped(text, 100, bytes), text);
    EXPECT_EQ(Wrapped(text + "  ", 0, bytes), text + "  ");
  }
}

TEST(WordWrapTest, AWordIsGivenOutWhenItIsWhole) {
  WordWrap wrap;
  EXPECT_EQ(wrap.Push("the fal", 10), "the");
  EXPECT_EQ(wrap.Push("con", 10), "");
  EXPECT_EQ(wrap.Push(" ", 10), " falcon");
  EXPECT_EQ(wrap.Push("s\n", 10), "\ns\n");
  EXPECT_EQ(wrap.Push("aw", 10), "");
  EXPECT_EQ(wrap.Finish(10), "aw");
  // With lines of any width no text waits.
  WordWrap any;
  EXPECT_EQ(any.Push("the fal", 0), "the fal");
  EXPECT_EQ(any.Push("con  ", 0), "con  ");
}

TEST(WordWrapTest, IndentsStayAndBlanksAtABreakDoNot) {
  EXPECT_EQ(Wrapped("    a b\n  c", 6), "    a\nb\n  c");
  EXPECT_EQ(Wrapped("a    b", 4), "a\nb");
  EXPECT_EQ(Wrapped("a\tb c", 10), "a\tb\nc");
  EXPECT_EQ(Wrapped("a\tbc", 9), "a\nbc");
}

TEST(WordWrapTest, ALongWordHasLinesOfItsOwn) {
  const std::string word = "0123456789";
  EXPECT_EQ(Wrapped("an " + word + " in", 4), "an\n" + word + "\nin");
  EXPECT_EQ(Wrapped("an " + word + " i", 4), "an\n" + word + " i");
  EXPECT_EQ(Wrapped(word + word.substr(0, 2) + " i", 4),
            word + word.substr(0, 2) + "\ni");
}

TEST(WordWrapTest, WideCharactersBreakAnywhereButBeforeOneThatCloses) {
  EXPECT_EQ(Wrapped("猫が海を見た。", 8), "猫が海を\n見た。");
  EXPECT_EQ(Wrapped("猫が海を。見", 8), "猫が海\nを。見");
  EXPECT_EQ(Wrapped("a cat 猫が海", 10), "a cat 猫が\n海");
  EXPECT_EQ(Wrapped("猫abc", 4), "猫\nabc");
}

TEST(WordWrapTest, WhatHasNoWidthStaysWithItsCharacter) {
  EXPECT_EQ(Wrapped("cafe\u0301 noir", 9), "cafe\u0301 noir");
  EXPECT_EQ(Wrapped("cafe\u0301 noir", 8), "cafe\u0301\nnoir");
}

TEST(WordWrapTest, NoLineIsLongerNorIsAWordBroken) {
  const std::string text =
      "Call me Ishmael. Some years ago, never mind how long precisely, having "
      "little or no money in my purse, and nothing particular to interest me "
      "on shore, I thought I would sail about a little.";
  for (int columns = 12; columns < 100; ++columns) {
    std::string joined;
    for (const absl::string_view line :
         absl::StrSplit(Wrapped(text, columns), '\n')) {
      EXPECT_LE(line.size(), static_cast<size_t>(columns));
      joined += (joined.empty() ? "" : " ") + std::string(line);
    }
    EXPECT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace tiercel::cli
