#include "runtime/generate/transcript.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace tiercel {
namespace {

using ::testing::ElementsAre;
using Given = std::vector<std::pair<int32_t, std::string>>;

class TranscriptTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = OpenModel(
        {.path = CheckpointPath("llama_chat.gguf"), .weights = false});
    ASSERT_NE(model_, nullptr);
  }

  std::vector<int32_t> Ids(std::string_view text) {
    std::vector<int32_t> ids;
    const absl::Status status =
        model_->tokenizer->Encode(text, Tokenizer::Special::kPlain, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }

  // Pushes ids until the transcript wants no more; returns the tokens given
  // out.
  Given Run(const std::vector<int32_t>& ids, std::vector<std::string> stops) {
    Given given;
    transcript_ = std::make_unique<Transcript>(
        model_->tokenizer.get(), std::move(stops),
        [&](const OutputToken& token) {
          given.emplace_back(token.id, std::string(token.text));
          return true;
        });
    for (int32_t id : ids) {
      const absl::StatusOr<bool> more = transcript_->Push(id);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!*more) break;
    }
    transcript_->Finish();
    return given;
  }

  static std::string Joined(const Given& given) {
    std::string joined;
    for (const auto& [id, text] : given) joined += text;
    return joined;
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<Transcript> transcript_;
};

TEST_F(TranscriptTest, GivesEveryTokenWithItsText) {
  const std::string text = "The falcon, 3 of them: a\n\nb";
  const std::vector<int32_t> ids = Ids(text);
  const Given given = Run(ids, {});
  EXPECT_EQ(Joined(given), text);
  EXPECT_EQ(transcript_->text(), text);
  EXPECT_EQ(transcript_->tokens(), ids);
  EXPECT_EQ(given.size(), ids.size());
}

TEST_F(TranscriptTest, NoTokenSplitsACharacter) {
  const std::string text = "\xF0\x9F\xA6\x85 \xE9\xB7\xB9";  // eagle, hawk
  const Given given = Run(Ids(text), {});
  EXPECT_EQ(Joined(given), text);
  for (const auto& [id, piece] : given) {
    EXPECT_TRUE(piece.empty() || (piece[0] & 0xC0) != 0x80) << piece;
  }
}

TEST_F(TranscriptTest, AnUnfinishedCharacterIsNoTextYet) {
  const std::string eagle = "\xF0\x9F\xA6\x85";
  std::vector<int32_t> ids = Ids("a" + eagle);
  ASSERT_GT(ids.size(), 2u);
  const int32_t last = ids.back();
  ids.pop_back();
  const Given given = Run(ids, {});
  EXPECT_EQ(Joined(given), "a");
  EXPECT_EQ(transcript_->text(), "a");
  EXPECT_EQ(transcript_->tokens(), ids);
  // A transcript that goes on there has the whole character.
  Transcript next(model_->tokenizer.get(), {}, nullptr);
  ASSERT_TRUE(next.GoOnBehind(ids, /*within_text=*/true).ok());
  ASSERT_TRUE(next.Push(last).ok());
  next.Finish();
  EXPECT_EQ(next.text(), eagle);
  EXPECT_EQ(next.tokens(), std::vector<int32_t>{last});
}

TEST_F(TranscriptTest, StopWithinATokenCutsIt) {
  const std::vector<int32_t> ids = Ids("one two three");
  const Given given = Run(ids, {"wo th"});
  EXPECT_EQ(transcript_->text(), "one t");
  EXPECT_EQ(Joined(given), "one t");
  EXPECT_LT(transcript_->tokens().size(), ids.size());
  // A token of several letters comes out with its letters before the stop.
  for (size_t at = 0; at < ids.size(); ++at) {
    const std::string piece =
        *model_->tokenizer->Piece(ids[at], Tokenizer::Special::kPlain);
    if (piece.size() < 2) continue;
    const Given cut = Run({ids[at]}, {piece.substr(1)});
    EXPECT_THAT(cut, ElementsAre(std::pair(ids[at], piece.substr(0, 1))));
    EXPECT_EQ(transcript_->text(), piece.substr(0, 1));
    return;
  }
  FAIL() << "no token of several letters";
}

TEST_F(TranscriptTest, StopAtTheBeginningLeavesNothing) {
  EXPECT_TRUE(Run(Ids("END of it"), {"END"}).empty());
  EXPECT_EQ(transcript_->text(), "");
  EXPECT_TRUE(transcript_->tokens().empty());
}

TEST_F(TranscriptTest, StopThatNeverCompletesComesOut) {
  const Given given = Run(Ids("almost EN"), {"END"});
  EXPECT_EQ(Joined(given), "almost EN");
  EXPECT_EQ(transcript_->text(), "almost EN");
}

// No token follows a refused one, not even one that comes out with it.
TEST_F(TranscriptTest, NothingComesAfterARefusal) {
  const std::vector<int32_t> ids = Ids("\xF0\x9F\xA6\x85");
  ASSERT_GT(ids.size(), 2u);
  std::vector<int32_t> given;
  Transcript transcript(model_->tokenizer.get(), {},
                        [&](const OutputToken& token) {
                          given.push_back(token.id);
                          return given.size() < 2;
                        });
  for (const int32_t id : ids) ASSERT_TRUE(transcript.Push(id).ok());
  transcript.Finish();
  EXPECT_TRUE(transcript.refused());
  EXPECT_THAT(given, ElementsAre(ids[0], ids[1]));
  EXPECT_EQ(transcript.tokens(), given);
}

TEST_F(TranscriptTest, WithoutATokenizerThereAreOnlyIds) {
  std::vector<int32_t> given;
  Transcript transcript(nullptr, {}, [&](const OutputToken& token) {
    EXPECT_TRUE(token.text.empty());
    given.push_back(token.id);
    return given.size() < 2;
  });
  EXPECT_TRUE(*transcript.Push(7));
  EXPECT_FALSE(*transcript.Push(8));
  EXPECT_TRUE(transcript.refused());
  transcript.Finish();
  EXPECT_THAT(given, ElementsAre(7, 8));
}

// A thought comes apart from the answer, token by token, and a stop text ends
// the answer alone.
TEST_F(TranscriptTest, TellsAThoughtFromTheAnswer) {
  const struct {
    std::string text;
    bool thinks;
    std::vector<std::string> stops;
    std::string thought;
    std::string answer;
  } cases[] = {
      {"<think>hm, so</think>\n\nYes.", false, {}, "hm, so", "Yes."},
      {"hm </think>Yes. <no", true, {}, "hm", "Yes. <no"},
      {"<think>hm</think>Yes. No.", false, {" No"}, "hm", "Yes."},
      {"<think>hm, so</think>Yes.", false, {", so"}, "hm, so", "Yes."},
      {"<think>hm</think>Yes> no.", false, {">"}, "hm", "Yes"},
      {"<think>hm</think>Yes.", false, {"k>Y", "hm"}, "hm", "Yes."},
      {"<thi> no", false, {">"}, "", "<thi"},
      {"<thi", false, {"hi"}, "", "<t"},
      {"Yes. <think>", false, {}, "", "Yes. <think>"},
  };
  for (const auto& c : cases) {
    std::string thought;
    std::string answer;
    std::vector<int32_t> given;
    Transcript transcript(model_->tokenizer.get(), c.stops,
                          [&](const OutputToken& token) {
                            given.push_back(token.id);
                            answer += token.text;
                            thought += token.thought;
                            return true;
                          });
    transcript.SplitThought(ThoughtTags{}, c.thinks);
    for (const int32_t id : Ids(c.text)) {
      const absl::StatusOr<bool> more = transcript.Push(id);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) break;
    }
    transcript.Finish();
    EXPECT_EQ(thought, c.thought) << c.text;
    EXPECT_EQ(answer, c.answer) << c.text;
    EXPECT_EQ(transcript.thought(), c.thought);
    EXPECT_EQ(transcript.text(), c.answer);
    EXPECT_EQ(transcript.tokens(), given);
    EXPECT_TRUE(!c.stops.empty() || given == Ids(c.text));
  }
}

// Tags that are control tokens have no text, and are found all the same.
TEST_F(TranscriptTest, TagsMayBeControlTokens) {
  ThoughtTags tags = {.open = "<|im_start|>", .close = "<|im_end|>"};
  std::vector<int32_t> ids;
  for (std::optional<int32_t>* const id : {&tags.open_id, &tags.close_id}) {
    const std::string& text = id == &tags.open_id ? tags.open : tags.close;
    ASSERT_TRUE(
        model_->tokenizer->Encode(text, Tokenizer::Special::kParse, &ids).ok());
    *id = ids.back();
    for (const int32_t word : Ids("ab")) ids.push_back(word);
  }
  ASSERT_TRUE(model_->tokenizer->IsControl(*tags.open_id));
  Transcript transcript(model_->tokenizer.get(), {}, nullptr);
  transcript.SplitThought(tags, /*thinks=*/false);
  for (const int32_t id : ids) ASSERT_TRUE(transcript.Push(id).ok());
  transcript.Finish();
  EXPECT_EQ(transcript.thought(), "ab");
  EXPECT_EQ(transcript.text(), "ab");
}

}  // namespace
}  // namespace tiercel
