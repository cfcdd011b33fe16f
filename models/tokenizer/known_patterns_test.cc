#include "models/tokenizer/known_patterns.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "kernels/system/testing.h"
#include "lib/text/utf8.h"
#include "models/tokenizer/unicode_classes.h"

namespace tiercel {
namespace {

constexpr std::string_view kPatterns[] = {kGpt2Pattern, kLlama3Pattern,
                                          kQwen2Pattern, kNumberPattern};

// Appends a match and the text before it, from `begin` on.
void Append(std::string_view text, size_t begin, const TextRange& match,
            std::vector<std::string>* pieces) {
  if (match.begin > begin) {
    pieces->emplace_back(text.substr(begin, match.begin - begin));
  }
  if (match.end > match.begin) {
    pieces->emplace_back(text.substr(match.begin, match.end - match.begin));
  }
}

std::vector<std::string> Pieces(std::string_view pattern,
                                std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const TextRange match = MatcherOf(pattern)(text, begin);
    if (match.begin < begin || match.end <= begin || match.end > text.size()) {
      ADD_FAILURE() << "a match from " << match.begin << " to " << match.end;
      break;
    }
    Append(text, begin, match, &pieces);
    begin = match.end;
  }
  return pieces;
}

// The engine of Hugging Face tokenizers.
class Oracle {
 public:
  explicit Oracle(std::string_view pattern)
      : regex_(*Regex::Compile(pattern)) {}

  std::vector<std::string> Pieces(const std::string& text) {
    std::vector<std::string> pieces;
    for (size_t begin = 0; begin < text.size();) {
      const TextRange match = *regex_.Find(text, begin, &room_);
      Append(text, begin, match, &pieces);
      begin = match.end;
    }
    return pieces;
  }

  bool Matches(const std::string& text) {
    const TextRange match = *regex_.Find(text, 0, &room_);
    return match.begin == 0 && match.end == text.size();
  }

 private:
  Regex regex_;
  Regex::Room room_;
};

TEST(KnownPatternsTest, OthersHaveNoMatcher) {
  EXPECT_EQ(MatcherOf("\\p{N}+"), nullptr);
  EXPECT_EQ(MatcherOf(""), nullptr);
}

TEST(KnownPatternsTest, Gpt2ByHand) {
  const auto pieces = [](std::string_view text) {
    return Pieces(kGpt2Pattern, text);
  };
  using V = std::vector<std::string>;
  EXPECT_EQ(pieces("I'll say  it's 1234."),
            (V{"I", "'ll", " say", " ", " it", "'s", " 1234", "."}));
  EXPECT_EQ(pieces("I'LL"), (V{"I", "'", "LL"}));
  EXPECT_EQ(pieces("a\n\nb  "), (V{"a", "\n", "\n", "b", "  "}));
  EXPECT_EQ(pieces("x \xff\xfe!"), (V{"x", " \xff\xfe!"}));
}

TEST(KnownPatternsTest, Llama3ByHand) {
  const auto pieces = [](std::string_view text) {
    return Pieces(kLlama3Pattern, text);
  };
  using V = std::vector<std::string>;
  EXPECT_EQ(pieces("I'LL (say) 12345\tx"),
            (V{"I", "'LL", " (", "say", ")", " ", "123", "45", "\tx"}));
  EXPECT_EQ(pieces("a!\n\n  \n b"), (V{"a", "!\n\n", "  \n", " b"}));
  EXPECT_EQ(pieces("a   b"), (V{"a", "  ", " b"}));
  EXPECT_EQ(pieces("'\u017fo"), (V{"'\u017f", "o"}));
}

TEST(KnownPatternsTest, Qwen2ByHand) {
  EXPECT_EQ(Pieces(kQwen2Pattern, "a 123"),
            (std::vector<std::string>{"a", " ", "1", "2", "3"}));
}

TEST(KnownPatternsTest, NumbersByHand) {
  EXPECT_EQ(Pieces(kNumberPattern, "a  12 b\u00bd"),
            (std::vector<std::string>{"a  ", "1", "2", " b", "\u00bd"}));
}

// Random strings over the characters on which the patterns turn.
TEST(KnownPatternsTest, FindsWhatTheRegularExpressionsFind) {
  const std::vector<std::string> alphabet = {
      " ",      " ",          " ",
      "\n",     "\r",         "\t",
      "\u00a0", "\u3000",     "\u2028",
      "\u0085", "\u180e",     "'",
      "'",      "'s",         "'S",
      "'re",    "'VE",        "'lL",
      "s",      "t",          "r",
      "e",      "v",          "E",
      "l",      "L",          "m",
      "d",      "a",          "Z",
      "\u017f", "\u212a",     "\u00e9",
      "\u0301", "\u4e2d",     "\u3042",
      "\u0e01", "1",          "2",
      "0",      "\u0663",     "\u00bd",
      "\u2167", ".",          "!",
      "-",      "_",          "\u2014",
      "\u200d", "\U0001f600", "\U0001d7d9",
      "\u02b0", "\u0903",     std::string(1, '\0')};
  std::mt19937 random(1);
  for (const std::string_view pattern : kPatterns) {
    Oracle oracle(pattern);
    for (int round = 0; round < 20000; ++round) {
      std::string text;
      for (int left = static_cast<int>(random() % 12) + 1; left > 0; --left) {
        text += alphabet[random() % alphabet.size()];
      }
      ASSERT_EQ(Pieces(pattern, text), oracle.Pieces(text))
          << pattern << " on " << text;
    }
  }
}

// Every code point, between characters that show its class.
TEST(KnownPatternsTest, AgreesOnEveryCodePointOfUnicode14) {
  Oracle unassigned(R"(\p{Cn})");
  for (const std::string_view pattern : kPatterns) {
    Oracle oracle(pattern);
    for (char32_t c = 0; c <= 0x10ffff; ++c) {
      if (c >= 0xd800 && c < 0xe000) continue;
      if (!TriesAll() && c > 0x7ff && c % 11 != 0) continue;
      // The installed engine may know fewer letters than our tables.
      std::string one;
      AppendUtf8(c, &one);
      if (ClassOf(c) != CharClass::kOther && unassigned.Matches(one)) continue;
      if (c > 0x3ffff && c % 257 != 0) continue;  // all alike
      std::string text = "a";
      text.append(one).append(" ").append(one).append("1").append(one);
      text.append("!");
      ASSERT_EQ(Pieces(pattern, text), oracle.Pieces(text))
          << pattern << " U+" << std::hex << static_cast<uint32_t>(c);
    }
  }
}

TEST(KnownPatternsTest, PiecesOfAnyBytesMakeUpTheText) {
  std::mt19937 random(2);
  for (const std::string_view pattern : kPatterns) {
    for (int round = 0; round < 3000; ++round) {
      std::string text;
      for (int left = static_cast<int>(random() % 40); left > 0; --left) {
        text.push_back(static_cast<char>(random() % 3 == 0 ? ' ' + random() % 20
                                                           : random() % 256));
      }
      std::string joined;
      for (const std::string& piece : Pieces(pattern, text)) joined += piece;
      ASSERT_EQ(joined, text);
    }
  }
}

TEST(UnicodeClassesTest, WhiteSpaceIsTwentyFiveCodePoints) {
  std::vector<char32_t> spaces;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (ClassOf(c) == CharClass::kSpace) spaces.push_back(c);
  }
  EXPECT_EQ(spaces, (std::vector<char32_t>{
                        0x9,    0xa,    0xb,    0xc,    0xd,    0x20,   0x85,
                        0xa0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                        0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028,
                        0x2029, 0x202f, 0x205f, 0x3000}));
}

TEST(UnicodeClassesTest, FirstAndLastOfARange) {
  EXPECT_EQ(ClassOf(U'@'), CharClass::kOther);
  EXPECT_EQ(ClassOf(U'A'), CharClass::kLetter);
  EXPECT_EQ(ClassOf(U'Z'), CharClass::kLetter);
  EXPECT_EQ(ClassOf(U'['), CharClass::kOther);
  EXPECT_EQ(ClassOf(0x3400), CharClass::kLetter);
  EXPECT_EQ(ClassOf(0x4dbf), CharClass::kLetter);
  EXPECT_EQ(ClassOf(0x4dc0), CharClass::kOther);
  EXPECT_EQ(ClassOf(0x2160), CharClass::kNumber);
  EXPECT_EQ(ClassOf(0x323af), CharClass::kLetter);  // the last, new in 15.0
  EXPECT_EQ(ClassOf(0x323b0), CharClass::kOther);
  EXPECT_EQ(ClassOf(0x10ffff), CharClass::kOther);
  EXPECT_EQ(ClassOf(kNoCodePoint), CharClass::kOther);
}

}  // namespace
}  // namespace tiercel
