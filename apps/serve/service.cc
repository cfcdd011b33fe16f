#include "apps/serve/service.h"

#include <array>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/cli/error.h"
#include "apps/serve/log_probs.h"
#include "apps/serve/page.h"
#include "apps/serve/refusal.h"
#include "apps/serve/reply.h"
#include "apps/serve/request.h"
#include "apps/serve/stopwatch.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

struct Path {
  std::string_view path;
  bool is_post;
};
constexpr std::array<Path, 11> kPaths = {{{"/", false},
                                          {"/health", false},
                                          {"/metrics", false},
                                          {"/models", false},
                                          {"/props", false},
                                          {"/v1/models", false},
                                          {"/detokenize", true},
                                          {"/documents", true},
                                          {"/tokenize", true},
                                          {"/v1/chat/completions", true},
                                          {"/v1/completions", true}}};

// The status of a request in the notes and counts whose client left before its
// answer; nginx calls it so, too.
constexpr int kGone = 499;

// Documents that may wait for the one that is read.
constexpr size_t kMostDocuments = 8;

const Path* PathNamed(std::string_view path) {
  for (const Path& one : kPaths) {
    if (one.path == path) return &one;
  }
  return nullptr;
}

// `path` is null for one that the server does not have.
const char* MethodsOf(const Path* path) {
  if (path == nullptr) return "OPTIONS";
  return path->is_post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
}

HttpReply JsonReply(const Json& document, int status = 200) {
  return {.status = status, .body = cli::Dump(document)};
}

HttpReply ErrorReply(const absl::Status& status) {
  HttpReply reply = JsonReply(ErrorDocument(status), HttpStatusOf(status));
  if (reply.status == 401) {
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  if (reply.status == 429 || reply.status == 503) {
    reply.headers.emplace_back("Retry-After", "1");
  }
  return reply;
}

std::string Event(const Json& document) {
  return absl::StrCat("data: ", cli::Dump(document), "\n\n");
}

// Answers the question of a browser whether a page may ask: only pages of this
// server get so far.
HttpReply Preflight(const Path* path, const std::string& origin) {
  const std::string methods = MethodsOf(path);
  HttpReply reply = {.status = 204};
  reply.headers = {{"Allow", methods}};
  if (origin.empty()) return reply;
  reply.headers.emplace_back("Access-Control-Allow-Origin", origin);
  reply.headers.emplace_back("Access-Control-Allow-Methods", methods);
  reply.headers.emplace_back("Access-Control-Allow-Headers",
                             "Authorization, Content-Type");
  reply.headers.emplace_back("Vary", "Origin");
  return reply;
}

}  // namespace

// ---- One generation ----

// Takes what a generation gives, and passes it on: as events while it comes, or
// whole at its end.
class Service::Flow {
 public:
  Flow(Service& service, Visit visit, const Request& request, Reply reply,
       size_t prompt_tokens, LogProbs log_probs)
      : service_(service),
        visit_(std::move(visit)),
        reply_(std::move(reply)),
        streams_(request.stream),
        chat_(request.endpoint == Endpoint::kChat),
        wants_usage_(request.include_usage),
        wants_progress_(request.return_progress),
        prompt_tokens_(static_cast<int64_t>(prompt_tokens)),
        log_probs_(std::move(log_probs)) {}

  // Begins the stream, if there is one, once.
  void Start() {
    if (!streams_) return;
    std::call_once(started_, [this] {
      visit_.exchange->BeginStream();
      if (chat_) Send(reply_.FirstChunk());
    });
  }
  void OnRead(size_t found, size_t read) {
    Start();
    watch_.Begin();
    const auto done = static_cast<int64_t>(found + read);
    const auto now = std::chrono::steady_clock::now();
    const bool due = read == 0 || done == prompt_tokens_ ||
                     now - told_at_ > std::chrono::milliseconds(100);
    if (!streams_ || !wants_progress_ || !due || done == told_) return;
    told_at_ = now;
    told_ = done;
    Send(reply_.ProgressChunk({prompt_tokens_, static_cast<int64_t>(found),
                               done, watch_.prompt_ms()}));
  }
  void OnToken(const Token& token) {
    const std::string_view text = token.text;
    const std::string_view thought = token.thought;
    if (!watch_.has_token()) {
      first_token_s_ = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - visit_.begin)
                           .count();
    }
    watch_.Token();
    log_probs_.Add(token);
    if (streams_) {
      Start();
      if (!text.empty() || !thought.empty()) {
        Send(reply_.TextChunk(text, thought, log_probs_.Rest()));
      }
      return;
    }
    answer_.text.append(text);
    answer_.thought.append(thought);
  }
  void OnEnd(const absl::Status& status, const Json& report) {
    watch_.End();
    if (report.is_object()) AddReport(report, &answer_);
    answer_.prompt_ms = watch_.prompt_ms();
    answer_.output_ms = watch_.output_ms();
    service_.metrics_.AddAnswer(answer_, first_token_s_);
    const std::string tokens =
        absl::StrCat(", ", answer_.prompt_tokens, " tokens, ",
                     answer_.cached_tokens, " found, ", answer_.output_tokens,
                     " written", cli::IsInterrupted(status) ? ", stopped" : "");
    answer_.log_probs = streams_ ? log_probs_.Rest() : log_probs_.Whole();
    if (!streams_) {
      HttpReply reply =
          status.ok() ? JsonReply(reply_.Whole(answer_)) : ErrorReply(status);
      service_.Note(visit_, reply.status, tokens);
      visit_.exchange->Reply(std::move(reply));
      return;
    }
    Start();
    service_.Note(visit_, status.ok() ? 200 : HttpStatusOf(status), tokens);
    if (status.ok()) {
      Send(reply_.LastChunk(answer_));
      if (wants_usage_) Send(reply_.UsageChunk(answer_));
      visit_.exchange->Write("data: [DONE]\n\n");
    } else {
      Send(ErrorDocument(status));
    }
    visit_.exchange->EndStream();
  }

 private:
  void Send(const Json& chunk) { visit_.exchange->Write(Event(chunk)); }

  Service& service_;
  const Visit visit_;
  const Reply reply_;
  const bool streams_;
  const bool chat_;
  const bool wants_usage_;
  const bool wants_progress_;
  const int64_t prompt_tokens_;
  std::once_flag started_;
  // These change in callbacks of the generation alone.
  serve::Answer answer_;
  LogProbs log_probs_;
  Stopwatch watch_;
  double first_token_s_ = 0;
  int64_t told_ = -1;
  std::chrono::steady_clock::time_point told_at_;
};

absl::Status Service::Generate(const HttpRequest& http, const Visit& visit) {
  RETURN_IF_ERROR(CheckReady());
  Generations& generations = *generations_.load();
  const Endpoint endpoint = http.path == "/v1/chat/completions"
                                ? Endpoint::kChat
                                : Endpoint::kCompletion;
  ASSIGN_OR_RETURN(const Body body, ParseBody(http.body));
  ASSIGN_OR_RETURN(Request request, ReadRequest(endpoint, body, options_));
  if (!request.document.empty()) {
    return Refuse("tiercel.document", "unsupported_parameter",
                  "tiercel.document is for tiercel batch: a server opens no "
                  "files for its clients");
  }
  Generations::Job job;
  ASSIGN_OR_RETURN(job.prompt,
                   PromptTokens(model_, request, generations.context()));
  RETURN_IF_ERROR(grammars_.Compile(&request));
  job.sampling = request.sampling;
  const bool chat = endpoint == Endpoint::kChat;
  const auto flow = std::make_shared<Flow>(
      *this, visit, request,
      Reply(request,
            absl::StrFormat("%s-%x-%x", chat ? "chatcmpl" : "cmpl", created_,
                            ++last_id_),
            std::time(nullptr), request.model.empty() ? name_ : request.model),
      job.prompt.size(), LogProbs(request, SpellerOf(model_)));
  job.on_read = [flow](size_t found, size_t read) {
    flow->OnRead(found, read);
  };
  job.on_token = [flow](const Token& token) { flow->OnToken(token); };
  job.on_end = [flow](const absl::Status& status, const Json& report) {
    flow->OnEnd(status, report);
  };
  const std::optional<Generations::Id> id = generations.Add(
      std::move(job), static_cast<size_t>(options_.requests.queue));
  if (!id.has_value()) {
    return HttpError(429, "queue_full",
                     absl::StrCat(options_.requests.queue,
                                  " requests wait already; try again later"));
  }
  flow->Start();
  visit.exchange->OnGone([&generations, id] { generations.Cancel(*id); });
  return absl::OkStatus();
}

absl::Status Service::ReadDocument(HttpRequest http, const Visit& visit) {
  if (drains_.load()) return CheckReady();
  DocumentQueue::Job job;
  job.name = QueryValue(http.query, "name");
  if (job.name.empty()) job.name = "document";
  job.bytes = std::move(http.body);
  job.on_end = [this, visit](const absl::StatusOr<std::string>& json) {
    Answer(visit,
           json.ok() ? HttpReply{.body = *json} : ErrorReply(json.status()));
  };
  const std::optional<DocumentQueue::Id> id = documents_.Add(std::move(job));
  if (!id.has_value()) {
    return HttpError(429, "queue_full",
                     absl::StrCat(kMostDocuments,
                                  " documents wait already; try again later"));
  }
  visit.exchange->OnGone([this, id] { documents_.Cancel(*id); });
  return absl::OkStatus();
}

// ---- All endpoints ----

Service::Service(const cli::Options& options, const cli::Model& model,
                 Guard guard)
    : options_(options),
      model_(model),
      grammars_(model),
      guard_(std::move(guard)),
      name_(ModelName(options.model.path)),
      documents_(kMostDocuments) {}

void Service::Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const Visit visit = {request.method, request.path, std::move(exchange)};
  // The library throws nothing; what the standard library throws ends here.
  absl::Status routed;
  try {
    routed = Route(std::move(request), visit);
  } catch (const std::bad_alloc&) {
    routed = HttpError(503, "out_of_memory", "out of memory");
  } catch (const std::exception& exception) {
    routed = HttpError(500, "internal", exception.what());
  }
  if (!routed.ok()) Answer(visit, ErrorReply(routed));
}

HttpReply Service::Refused(const absl::Status& status) {
  HttpReply reply = ErrorReply(status);
  Note({"-", "-", nullptr}, reply.status, "");
  return reply;
}

void Service::CancelAll() {
  documents_.CancelAll();
  Generations* const generations = generations_.load();
  if (generations != nullptr) generations->CancelAll();
}

absl::Status Service::Route(HttpRequest request, const Visit& visit) {
  RETURN_IF_ERROR(guard_.CheckSource(request.host, request.origin));
  const Path* const path = PathNamed(request.path);
  const std::string& method = request.method;
  if (method == "OPTIONS") {
    Answer(visit, Preflight(path, request.origin));
    return absl::OkStatus();
  }
  if (path == nullptr) {
    return HttpError(404, "not_found", "there is no such path");
  }
  if (path->is_post ? method != "POST" : method != "GET" && method != "HEAD") {
    HttpReply reply = ErrorReply(HttpError(
        405, "method_not_allowed",
        absl::StrCat(request.path, " takes ", path->is_post ? "POST" : "GET")));
    reply.headers.emplace_back("Allow", MethodsOf(path));
    Answer(visit, std::move(reply));
    return absl::OkStatus();
  }
  // A browser has no key before it has the page, which says nothing.
  if (request.path != "/health" && request.path != "/") {
    RETURN_IF_ERROR(guard_.CheckKey(request.authorization));
  }
  if (request.path == "/v1/chat/completions" ||
      request.path == "/v1/completions") {
    return Generate(request, visit);
  }
  if (request.path == "/documents") {
    return ReadDocument(std::move(request), visit);
  }
  // No other call may use the model while it is loaded.
  if (generations_.load() == nullptr && request.path != "/health" &&
      request.path != "/metrics" && request.path != "/") {
    return CheckReady();
  }
  ASSIGN_OR_RETURN(HttpReply reply, ReplyTo(request));
  Answer(visit, std::move(reply));
  return absl::OkStatus();
}

absl::StatusOr<HttpReply> Service::ReplyTo(const HttpRequest& request) const {
  if (request.path == "/") return PageReply();
  if (request.path == "/health") return Health();
  if (request.path == "/metrics") {
    const Generations* const generations = generations_.load();
    return HttpReply{.body = generations == nullptr
                                 ? metrics_.Text(0, 0)
                                 : metrics_.Text(generations->running(),
                                                 generations->waiting()),
                     .content_type = "text/plain; version=0.0.4"};
  }
  absl::StatusOr<Json> document = request.path == "/props" ? Props() : Models();
  if (request.path == "/tokenize") document = Tokenize(request.body);
  if (request.path == "/detokenize") document = Detokenize(request.body);
  RETURN_IF_ERROR(document.status());
  return JsonReply(*document);
}

absl::Status Service::CheckReady() const {
  if (drains_.load()) {
    return HttpError(503, "shutting_down", "the server is shutting down");
  }
  if (generations_.load() == nullptr) {
    return HttpError(503, "loading", "the model is being loaded");
  }
  return absl::OkStatus();
}

HttpReply Service::Health() const {
  const absl::Status ready = CheckReady();
  return ready.ok() ? JsonReply({{"status", "ok"}}) : ErrorReply(ready);
}

Json Service::Models() const {
  const absl::StatusOr<Json> described = model_.Describe();
  const Json parameters =
      described.ok() ? described->value("parameters", Json()) : Json();
  const int64_t context = generations_.load()->context();
  return {{"object", "list"},
          {"data",
           {{{"id", name_},
             {"object", "model"},
             {"created", created_},
             {"owned_by", "tiercel"},
             {"meta",
              {{"n_ctx", context},
               {"n_ctx_train", model_.info().context},
               {"n_params", parameters},
               {"size", model_.info().weight_bytes},
               {"n_vocab", model_.info().vocab}}},
             {"max_model_len", context}}}}};
}

Json Service::Props() const {
  const char* const chat_template = model_.info().chat_template;
  const cli::SamplingOptions& drawn = options_.sampling;
  return {{"default_generation_settings",
           {{"n_ctx", generations_.load()->context()},
            {"params",
             {{"seed", drawn.seed.value_or(0)},
              {"temperature", drawn.temperature},
              {"top_k", drawn.top_k},
              {"top_p", drawn.top_p},
              {"min_p", drawn.min_p},
              {"repeat_penalty", drawn.repeat_penalty},
              {"n_predict", drawn.max_tokens}}}}},
          {"total_slots", generations_.load()->parallel()},
          {"model_alias", name_},
          {"chat_template", chat_template != nullptr ? chat_template : ""},
          {"build_info", tiercel_version()}};
}

absl::StatusOr<Json> Service::Tokenize(std::string_view text) const {
  ASSIGN_OR_RETURN(const Body body, ParseBody(text));
  const Body content = body.value("content", body.value("prompt", Body()));
  if (!content.is_string()) {
    return Refuse("content", "invalid_request", "content: need a string");
  }
  uint32_t flags = 0;
  for (const auto& [name, flag] :
       {std::pair("add_special", TIERCEL_ADD_BOS),
        std::pair("parse_special", TIERCEL_PARSE_SPECIAL)}) {
    const Body wanted = body.value(name, Body(false));
    if (!wanted.is_boolean()) {
      return Refuse(name, "invalid_request",
                    absl::StrCat(name, ": need true or false"));
    }
    if (wanted.get<bool>()) flags |= static_cast<uint32_t>(flag);
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                   model_.Tokenize(content.get<std::string>(), flags, {}));
  return Json{{"tokens", tokens}, {"count", tokens.size()}};
}

absl::StatusOr<Json> Service::Detokenize(std::string_view text) const {
  ASSIGN_OR_RETURN(const Body body, ParseBody(text));
  const Body given = body.value("tokens", Body());
  std::vector<int32_t> tokens;
  bool well = given.is_array();
  for (size_t i = 0; well && i < given.size(); ++i) {
    well = given[i].is_number_integer() && given[i] >= 0 &&
           given[i] < model_.info().vocab;
    if (well) tokens.push_back(given[i].get<int32_t>());
  }
  if (!well) {
    return Refuse(
        "tokens", "invalid_request",
        absl::StrCat("tokens: need a list of ids below ", model_.info().vocab));
  }
  ASSIGN_OR_RETURN(const std::string content,
                   model_.Detokenize(tokens, TIERCEL_PARSE_SPECIAL));
  return Json{{"content", content}};
}

// ---- The log ----

void Service::Answer(const Visit& visit, HttpReply reply) {
  Note(visit, reply.status, "");
  visit.exchange->Reply(std::move(reply));
}

void Service::Note(const Visit& visit, int status, const std::string& more) {
  // The client has seen no answer.
  if (visit.exchange != nullptr && visit.exchange->IsGone()) status = kGone;
  const bool known = PathNamed(visit.path) != nullptr;
  metrics_.AddRequest(known ? visit.path : "other", status);
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - visit.begin;
  char time[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  if (gmtime_r(&now, &parts) != nullptr) {
    std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &parts);
  }
  constexpr size_t kMostShown = 64;
  cli::WriteNote(absl::StrFormat(
      "%s %s %s %d, %.1f ms%s\n", time, visit.method.substr(0, kMostShown),
      visit.path.substr(0, kMostShown), status, took.count(), more));
}

}  // namespace tiercel::serve
