#include "apps/serve/document_queue.h"

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/error.h"
#include "apps/terminal/output.h"
#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

using Result = absl::StatusOr<std::string>;

// Holds up a queue's thread, so that what follows waits. It outlives the queue.
class Holder {
 public:
  void Hold(DocumentQueue& queue) {
    queue.Add({"first.txt", "First.", [this](const Result&) {
                 begun_.set_value();
                 released_.get_future().wait();
               }});
    begun_.get_future().wait();
  }
  void Release() { released_.set_value(); }

 private:
  std::promise<void> begun_;
  std::promise<void> released_;
};

DocumentQueue::Job JobOf(const std::string& name, const std::string& bytes,
                         std::promise<Result>* result) {
  return {name, bytes,
          [result](const Result& json) { result->set_value(json); }};
}

TEST(DocumentQueueTest, DocumentsBecomeJson) {
  std::promise<Result> well;
  std::promise<Result> empty;
  DocumentQueue queue(2);
  queue.Add(JobOf("a.html", "<title>A</title><h1>B</h1><p>C", &well));
  queue.Add(JobOf("b.txt", " \n", &empty));
  const Result json = well.get_future().get();
  ASSERT_TRUE(json.ok()) << json.status();
  const cli::Json document = cli::Json::parse(*json);
  EXPECT_EQ(document.at("title"), "A");
  EXPECT_EQ(document.at("sections").at(0).at("title"), "B");
  const absl::Status error = empty.get_future().get().status();
  EXPECT_EQ(cli::CodeOf(error), "empty_document");
  EXPECT_EQ(error.message(), "'b.txt' has no text");
}

TEST(DocumentQueueTest, SoManyWaitAndNoMore) {
  Holder holder;
  std::promise<Result> results[3];
  DocumentQueue queue(2);
  holder.Hold(queue);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(queue.Add(JobOf("a.txt", "A", &results[i])).has_value(), i < 2);
  }
  holder.Release();
  EXPECT_TRUE(results[0].get_future().get().ok());
  EXPECT_TRUE(results[1].get_future().get().ok());
}

TEST(DocumentQueueTest, OneThatWaitsIsCancelledAtOnce) {
  Holder holder;
  std::vector<int> cancelled;
  std::vector<DocumentQueue::Id> ids;
  DocumentQueue queue(3);
  holder.Hold(queue);
  for (int i = 0; i < 3; ++i) {
    ids.push_back(
        *queue.Add({"a.txt", "A", [&cancelled, i](const Result& json) {
                      if (cli::IsInterrupted(json.status())) {
                        cancelled.push_back(i);
                      }
                    }}));
  }
  queue.Cancel(ids[1]);
  EXPECT_EQ(cancelled, std::vector<int>({1}));
  queue.Cancel(ids[1]);  // it has ended
  queue.CancelAll();
  EXPECT_EQ(cancelled, std::vector<int>({1, 0, 2}));
  holder.Release();
}

}  // namespace
}  // namespace tiercel::serve
