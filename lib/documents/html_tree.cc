#include "lib/documents/html_tree.h"

#include <time.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdlib>

namespace tiercel::document {
namespace {

constexpr size_t kBaseBytes = size_t{64} << 20;
constexpr size_t kBytesPerInputByte = 32;
// Prose takes 5 to 10 bytes per byte of HTML, coloured program listings up to
// 26, so only pages of 10 MiB and more come near this.
constexpr size_t kMostBytes = size_t{256} << 20;
constexpr double kBaseSeconds = 0.5;
constexpr double kSecondsPerInputByte = 0.2e-6;

// The processor time of this thread: a busy machine must not fail a good page.
double ProcessorSeconds() {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

// A list of blocks, so that all of them can be freed whatever state the parser
// is in.
class HtmlTree::Heap {
 public:
  explicit Heap(size_t input_bytes)
      : bytes_left_(std::min(kMostBytes,
                             kBaseBytes + kBytesPerInputByte * input_bytes)),
        deadline_(ProcessorSeconds() + kBaseSeconds +
                  kSecondsPerInputByte * static_cast<double>(input_bytes)) {
    head_.next = &head_;
    head_.previous = &head_;
  }
  ~Heap() {
    while (head_.next != &head_) Release(head_.next);
  }

  // Returns null if a limit was met. The parser checks no allocation, so an
  // exceeded limit leaves it by longjmp: over frames of C, never of C++.
  const GumboNode* Parse(std::string_view html) {
    GumboOptions options = kGumboDefaultOptions;
    options.allocator = &Heap::Allocate;
    options.deallocator = &Heap::Deallocate;
    options.userdata = this;
    options.max_errors = 0;
    if (setjmp(limit_met_) != 0) return nullptr;
    return gumbo_parse_with_options(&options, html.data(), html.size())->root;
  }

 private:
  struct alignas(std::max_align_t) Block {
    Block* next;
    Block* previous;
    size_t bytes;
  };

  static void* Allocate(void* heap, size_t bytes) {
    return static_cast<Heap*>(heap)->Take(bytes);
  }
  static void Deallocate(void* heap, void* pointer) {
    if (pointer != nullptr) {
      static_cast<Heap*>(heap)->Release(static_cast<Block*>(pointer) - 1);
    }
  }

  void* Take(size_t bytes) {
    const size_t total = sizeof(Block) + bytes;
    const bool check_time = ++num_taken_ % 64 == 0;
    if (total > bytes_left_ || total < bytes ||
        (check_time && ProcessorSeconds() > deadline_)) {
      std::longjmp(limit_met_, 1);
    }
    auto* const block = static_cast<Block*>(std::malloc(total));
    if (block == nullptr) std::longjmp(limit_met_, 1);
    bytes_left_ -= total;
    *block = {head_.next, &head_, total};
    head_.next->previous = block;
    head_.next = block;
    return block + 1;
  }

  void Release(Block* block) {
    bytes_left_ += block->bytes;
    block->previous->next = block->next;
    block->next->previous = block->previous;
    std::free(block);
  }

  Block head_{};
  size_t bytes_left_;
  const double deadline_;
  size_t num_taken_ = 0;
  std::jmp_buf limit_met_;
};

HtmlTree::HtmlTree(std::string_view html)
    : heap_(std::make_unique<Heap>(html.size())), root_(heap_->Parse(html)) {}

HtmlTree::~HtmlTree() = default;

}  // namespace tiercel::document
