#include "models/tokenizer/pretokenize.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lib/status/error.h"
#include "models/tokenizer/gguf_pres.h"

namespace tiercel {
namespace {

using Strings = std::vector<std::string>;

Strings PiecesBy(const Pretokenizer& pretokenizer, std::string_view text) {
  Strings pieces;
  Pretokenizer::Walk walk(pretokenizer, text);
  for (size_t begin = 0; begin < text.size();) {
    const auto end = walk.End(begin);
    if (!end.ok() || *end <= begin || *end > text.size()) {
      ADD_FAILURE() << "a piece from " << begin << ": " << end.status();
      break;
    }
    pieces.emplace_back(text.substr(begin, *end - begin));
    begin = *end;
  }
  return pieces;
}

Strings PiecesBy(const std::vector<Cut>& cuts, std::string_view text) {
  const auto pretokenizer = Pretokenizer::Make(cuts);
  EXPECT_TRUE(pretokenizer.ok()) << pretokenizer.status();
  return pretokenizer.ok() ? PiecesBy(*pretokenizer, text) : Strings();
}

Strings PiecesOf(std::string_view family, std::string_view text) {
  const GgufPre* const pre = FindGgufPre(family);
  EXPECT_NE(pre, nullptr) << family;
  return pre == nullptr ? Strings() : PiecesBy(pre->cuts, text);
}

// Cuts all of the text step by step.
Strings AllAtEachStep(const std::vector<Regex>& steps,
                      const std::string& text) {
  Strings pieces = {text};
  for (const Regex& step : steps) {
    Regex::Room room;
    Strings next;
    for (const std::string& piece : pieces) {
      for (size_t begin = 0; begin < piece.size();) {
        const TextRange match = *step.Find(piece, begin, &room);
        if (match.begin > begin) {
          next.push_back(piece.substr(begin, match.begin - begin));
        }
        if (match.end > match.begin) {
          next.push_back(piece.substr(match.begin, match.end - match.begin));
        }
        begin = match.end;
      }
    }
    pieces = std::move(next);
  }
  return pieces;
}

TEST(PretokenizeTest, NumbersApart) {
  // Spaces before a number end a stretch, and none of them goes with it.
  EXPECT_EQ(PiecesOf("smollm", "a  12 b"),
            (Strings{"a", "  ", "1", "2", " b"}));
}

TEST(PretokenizeTest, CaseEndsWords) {
  EXPECT_EQ(PiecesOf("tekken", "HelloWORLDs camelCase it's 123/\n x"),
            (Strings{"Hello", "WORLDs", " camel", "Case", " it", "'s", " ", "1",
                     "2", "3", "/\n", " x"}));
  // Contractions stay with their words, and numbers come in threes.
  EXPECT_EQ(PiecesOf("gpt-4o", "It'll DON'T 1234./"),
            (Strings{"It'll", " DON'T", " ", "123", "4", "./"}));
}

TEST(PretokenizeTest, MarksStayWithTheirLetters) {
  EXPECT_EQ(PiecesOf("qwen35", "e\u0301a 12"),
            (Strings{"e\u0301a", " ", "1", "2"}));
  EXPECT_EQ(PiecesOf("qwen2", "e\u0301a"), (Strings{"e", "\u0301a"}));
}

TEST(PretokenizeTest, ScriptsApart) {
  EXPECT_EQ(PiecesOf("deepseek-v3", "ab\u4e2d\u6587\u304b cd1234"),
            (Strings{"ab", "\u4e2d\u6587\u304b", " cd", "123", "4"}));
  EXPECT_EQ(PiecesOf("deepseek-llm", "a b,\n\n1234  "),
            (Strings{"a", " b", ",", "\n", "\n", "1234", "  "}));
  EXPECT_EQ(PiecesOf("deepseek-coder", "a_b 12"),
            (Strings{"a", "_", "b", " ", "1", "2"}));
  EXPECT_EQ(PiecesOf("kimi-k2", "ab\u4e2d\u6587cd"),
            (Strings{"ab", "\u4e2d\u6587", "cd"}));
}

TEST(PretokenizeTest, MarksThenWordsThenDigits) {
  EXPECT_EQ(PiecesOf("falcon", "x+=y `12345` z"),
            (Strings{"x", "+=", "y", " ", "`", "123", "45", "`", " z"}));
  EXPECT_EQ(PiecesOf("default", "x+=y 12345"),
            (Strings{"x", "+=", "y", " ", "123", "45"}));
}

// The walk keeps the current piece of each step; here every step is whole.
TEST(PretokenizeTest, EveryFamilyCutsStepByStep) {
  const Strings alphabet = {
      " ",      " ",      "\n",     "\r",     "\t",     "\u00a0", "\u3000",
      "'s",     "'RE",    "'",      "a",      "b",      "Z",      "Q",
      "\u01c5", "\u02b0", "\u0301", "\u0e01", "\u4e2d", "\u3042", "\uac00",
      "1",      "2",      "3",      "\u0663", "\u00bd", ".",      "/",
      "$",      "`",      "_",      "\uff01", "\u2018", "\x01",   "\u200d"};
  std::mt19937 random(1);
  for (const GgufPre& pre : AllGgufPres()) {
    const auto pretokenizer = *Pretokenizer::Make(pre.cuts);
    std::vector<Regex> steps;
    for (const Cut& cut : pre.cuts) {
      steps.push_back(*Regex::Compile(cut.pattern));
    }
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (int left = static_cast<int>(random() % 14) + 1; left > 0; --left) {
        text += alphabet[random() % alphabet.size()];
      }
      ASSERT_EQ(PiecesBy(pretokenizer, text), AllAtEachStep(steps, text))
          << pre.names.front() << " on " << text;
    }
  }
}

TEST(PretokenizeTest, PiecesOfAnyBytesMakeUpTheText) {
  std::mt19937 random(2);
  for (const GgufPre& pre : AllGgufPres()) {
    const auto pretokenizer = *Pretokenizer::Make(pre.cuts);
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (int left = static_cast<int>(random() % 40); left > 0; --left) {
        text.push_back(static_cast<char>(random() % 3 == 0 ? ' ' + random() % 20
                                                           : random() % 256));
      }
      std::string joined;
      for (const std::string& piece : PiecesBy(pretokenizer, text))
        joined += piece;
      ASSERT_EQ(joined, text) << pre.names.front();
    }
  }
}

TEST(PretokenizeTest, AStrayByteIsASymbol) {
  EXPECT_EQ(PiecesOf("tekken", "x \xff\xfe!"), (Strings{"x", " \xff\xfe!"}));
}

TEST(PretokenizeTest, APatternThatMatchesNothingCutsThere) {
  EXPECT_EQ(PiecesBy({{"(?=b)"}}, "abba"), (Strings{"a", "b", "ba"}));
  EXPECT_EQ(PiecesBy({{"x*"}}, "axxb"), (Strings{"a", "xx", "b"}));
}

TEST(PretokenizeTest, NoStepsLeaveThePieceWhole) {
  EXPECT_EQ(PiecesBy(std::vector<Cut>(), "a b"), (Strings{"a b"}));
}

TEST(PretokenizeTest, NamesTextThatAFamilyWouldDrop) {
  const auto pretokenizer = Pretokenizer::Make({{"[a-z]+", /*is_all=*/true}});
  ASSERT_TRUE(pretokenizer.ok());
  Pretokenizer::Walk walk(*pretokenizer, "ab 1c");
  EXPECT_EQ(*walk.End(0), 2u);
  const auto end = walk.End(2);
  EXPECT_EQ(CodeOf(end.status()), "invalid_text");
  EXPECT_NE(end.status().message().find("\" 1\""), absl::string_view::npos)
      << end.status();
}

TEST(PretokenizeTest, RefusesWhatIsNoRegularExpression) {
  const auto made = Pretokenizer::Make({{"(a"}});
  EXPECT_EQ(CodeOf(made.status()), "unsupported_tokenizer");
}

TEST(PretokenizeTest, EndsWhatGrowsWithoutBound) {
  const auto pretokenizer = Pretokenizer::Make({{"(a|a)+[bc]"}});
  ASSERT_TRUE(pretokenizer.ok());
  const std::string text(64, 'a');
  Pretokenizer::Walk walk(*pretokenizer, text);
  EXPECT_EQ(CodeOf(walk.End(0).status()), "invalid_text");
}

}  // namespace
}  // namespace tiercel
