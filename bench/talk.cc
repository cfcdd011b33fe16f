// Several people talk about one book for a while, in forks of one session: the
// gaps between the tokens of an answer, and the memory over time.
//
//   talk MODEL BOOK [NAME=VALUE ...]
//
// Each asks again as soon as his answer has ended, behind his last answer, or
// behind the book once the context is full. Prints one JSON document.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "include/tiercel_lab.h"
#include "include/tiercel_queue.h"
#include "nlohmann/json.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// Ends the program if a call failed.
void Need(tiercel_status status, const tiercel_error& error) {
  if (status == TIERCEL_OK) return;
  std::cerr << "talk: " << error.message << "\n";
  std::exit(1);
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The memory of this program that is in use, in MiB.
double ResidentMib() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share *
                                    static_cast<double>(values.size() - 1))];
}

// Settings by name, with their defaults.
class Settings {
 public:
  Settings(int count, char** arguments) {
    for (int i = 0; i < count; ++i) {
      const std::string argument = arguments[i];
      const size_t at = argument.find('=');
      const std::string name = argument.substr(0, at);
      if (at == std::string::npos || values_.count(name) == 0) {
        std::cerr << "talk: " << argument << ": need one of";
        for (const auto& [known, value] : values_) {
          std::cerr << " " << known << "=" << value;
        }
        std::cerr << "\n";
        std::exit(2);
      }
      values_[name] = std::strtod(argument.c_str() + at + 1, nullptr);
    }
  }
  double of(const std::string& name) const { return values_.at(name); }
  int64_t count(const std::string& name) const {
    return static_cast<int64_t>(of(name));
  }

 private:
  std::map<std::string, double> values_ = {
      {"people", 8},  {"seconds", 600}, {"tokens", 64},
      {"text", 7000}, {"threads", 0},   {"device", 0},
      {"link", 0},    {"context", 0},   {"seed", 0}};
};

// The model and the book that all have read.
class Book {
 public:
  Book(const char* model, const char* file, const Settings& settings) {
    tiercel_model_params params = TIERCEL_INIT(tiercel_model_params);
    params.path = model;
    params.threads = static_cast<int32_t>(settings.count("threads"));
    tiercel_simulation simulation = TIERCEL_INIT(tiercel_simulation);
    simulation.device_bytes = static_cast<uint64_t>(settings.count("device"));
    simulation.link_bytes_per_s = settings.of("link");
    params.simulation = &simulation;
    Need(tiercel_model_open(&params, &model_, &error_), error_);
    std::ifstream in(file, std::ios::binary);
    tokens_ = Tokenize({std::istreambuf_iterator<char>(in), {}});
    tokens_.resize(std::min<size_t>(
        tokens_.size(), static_cast<size_t>(settings.count("text"))));
    tiercel_session_params of_session = TIERCEL_INIT(tiercel_session_params);
    of_session.context = settings.count("context");
    of_session.forks = settings.count("people");
    of_session.fork_tokens = 8 * settings.count("tokens");
    Need(tiercel_session_create(model_, &of_session, &session_, &error_),
         error_);
    Need(tiercel_session_prefill(session_, tokens_.data(), tokens_.size(),
                                 nullptr, nullptr, &error_),
         error_);
  }
  ~Book() {
    tiercel_session_free(session_);
    tiercel_model_free(model_);
  }
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  std::vector<int32_t> Tokenize(const std::string& text) {
    std::vector<int32_t> ids(text.size() + 1);
    size_t size = ids.size();
    Need(tiercel_tokenize(model_, text.data(), text.size(), 0, nullptr,
                          ids.data(), &size, &error_),
         error_);
    ids.resize(size);
    return ids;
  }
  tiercel_session* Fork() {
    tiercel_session* fork = nullptr;
    Need(tiercel_session_fork(session_, &fork, &error_), error_);
    return fork;
  }
  const tiercel_model* model() const { return model_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }

 private:
  tiercel_error error_ = TIERCEL_INIT(tiercel_error);
  tiercel_model* model_ = nullptr;
  tiercel_session* session_ = nullptr;
  std::vector<int32_t> tokens_;
};

// One who asks; his callbacks run on the queue's thread.
class Person {
 public:
  Person(Book& book, tiercel_queue* queue, const Settings& settings,
         uint64_t seed)
      : book_(book), queue_(queue), session_(book.Fork()) {
    // No more than was planned for a fork.
    most_ = book.tokens().size() +
            8 * static_cast<size_t>(settings.count("tokens"));
    sampling_.max_tokens = settings.count("tokens");
    sampling_.temperature = 0.8f;
    sampling_.ignore_eos = 1;
    sampling_.seed = seed;
    for (const char* question :
         {"\n\nQ: Who is speaking here?\nA:",
          "\n\nQ: What happened before that, and why?\nA:",
          "\n\nQ: Describe the place in a few words.\nA:"}) {
      questions_.push_back(book.Tokenize(question));
    }
    text_ = book.tokens();
    asked_ = seed;
  }
  ~Person() { tiercel_session_free(session_); }
  Person(const Person&) = delete;
  Person& operator=(const Person&) = delete;

  void Ask() {
    const std::vector<int32_t>& question =
        questions_[asked_++ % questions_.size()];
    const size_t needed =
        question.size() + static_cast<size_t>(sampling_.max_tokens);
    if (text_.size() + needed > most_) text_ = book_.tokens();
    text_.insert(text_.end(), question.begin(), question.end());
    ++sampling_.seed;
    tiercel_batch_entry entry = TIERCEL_INIT(tiercel_batch_entry);
    entry.session = session_;
    entry.sampling = &sampling_;
    entry.ids = text_.data();
    entry.count = text_.size();
    entry.on_token = &Person::OnToken;
    entry.user_data = this;
    last_ = Clock::now();
    given_ = 0;
    tiercel_error error = TIERCEL_INIT(tiercel_error);
    Need(tiercel_queue_add(queue_, &entry, &Person::OnEnd, &error), error);
  }
  void Stop() { stops_ = true; }

  const std::vector<double>& gaps_ms() const { return gaps_ms_; }
  const std::vector<double>& first_ms() const { return first_ms_; }
  int64_t answers() const { return answers_; }

 private:
  static int OnToken(void* to, const tiercel_token* token) {
    auto& own = *static_cast<Person*>(to);
    const double ms = SecondsSince(own.last_) * 1e3;
    own.last_ = Clock::now();
    (own.given_++ == 0 ? own.first_ms_ : own.gaps_ms_).push_back(ms);
    own.text_.push_back(token->id);
    return own.stops_ ? 1 : 0;
  }
  static void OnEnd(void* to, tiercel_status status,
                    const tiercel_error* error) {
    auto& own = *static_cast<Person*>(to);
    if (own.stops_) return;
    Need(status, *error);
    ++own.answers_;
    own.Ask();
  }

  Book& book_;
  tiercel_queue* const queue_;
  tiercel_session* const session_;
  size_t most_;
  tiercel_sampling sampling_ = TIERCEL_INIT(tiercel_sampling);
  std::vector<std::vector<int32_t>> questions_;
  std::vector<int32_t> text_;
  size_t asked_;
  Clock::time_point last_;
  int64_t given_ = 0;
  int64_t answers_ = 0;
  std::vector<double> gaps_ms_;
  std::vector<double> first_ms_;
  std::atomic<bool> stops_{false};
};

nlohmann::json Summary(const std::vector<double>& ms) {
  return {{"count", ms.size()},
          {"p50", Quantile(ms, 0.5)},
          {"p99", Quantile(ms, 0.99)},
          {"max", Quantile(ms, 1)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: talk MODEL BOOK [NAME=VALUE ...]\n";
    return 2;
  }
  const Settings settings(argc - 3, argv + 3);
  Book book(argv[1], argv[2], settings);
  tiercel_error error = TIERCEL_INIT(tiercel_error);
  tiercel_queue_params params = TIERCEL_INIT(tiercel_queue_params);
  params.at_once = settings.count("people");
  tiercel_queue* queue = nullptr;
  Need(tiercel_queue_create(book.model(), &params, &queue, &error), error);

  const Clock::time_point start = Clock::now();
  std::deque<Person> people;
  for (int64_t i = 0; i < settings.count("people"); ++i) {
    people.emplace_back(book, queue, settings,
                        static_cast<uint64_t>(settings.count("seed") + i));
    people.back().Ask();
  }
  constexpr int kSamples = 10;
  std::vector<double> resident;
  for (int sample = 1; sample <= kSamples; ++sample) {
    const double until = settings.of("seconds") * sample / kSamples;
    const double left = until - SecondsSince(start);
    if (left > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(left));
    }
    resident.push_back(ResidentMib());
  }
  for (Person& person : people) person.Stop();
  Need(tiercel_queue_wait(queue, &error), error);
  const double seconds = SecondsSince(start);
  tiercel_queue_free(queue);

  std::vector<double> gaps;
  std::vector<double> firsts;
  std::vector<int64_t> answers;
  for (const Person& person : people) {
    gaps.insert(gaps.end(), person.gaps_ms().begin(), person.gaps_ms().end());
    firsts.insert(firsts.end(), person.first_ms().begin(),
                  person.first_ms().end());
    answers.push_back(person.answers());
  }
  const nlohmann::json document = {
      {"people", people.size()},
      {"text_tokens", book.tokens().size()},
      {"seconds", seconds},
      {"tokens_per_s",
       static_cast<double>(gaps.size() + firsts.size()) / seconds},
      {"answers", answers},
      {"gap_ms", Summary(gaps)},
      {"first_token_ms", Summary(firsts)},
      {"resident_mib", resident}};
  std::cout << document.dump(2) << "\n";
  return 0;
}
