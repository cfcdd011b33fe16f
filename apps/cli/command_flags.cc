#include "apps/cli/command_flags.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/default_paths.h"
#include "apps/cli/shared_flags.h"

namespace tiercel::cli {
namespace {

// Sets defaults with which the text of a small model reads well: with no
// penalty it repeats its sentences, and a repeat penalty has it invent names
// for what a text is about.
void SetReadingDefaults(int64_t max_tokens, SamplingOptions* sampling) {
  sampling->max_tokens = max_tokens;
  sampling->dry_multiplier = 0.8;
}

void AddChoiceFlags(FlagSet& flags, BookOptions* book) {
  flags.Group("The book");
  flags.Text("--chapters", "3,5-7|TITLE",
             "read these alone: by the numbers that --toc shows, or by a title",
             [=](const std::string& text) { book->chapters = text; });
  flags.Text("--pages", "10-40",
             "read these alone, as they are numbered: xii, A-3, A-3-A-7",
             [=](const std::string& text) { book->pages = text; });
  flags.Text("--chapter-pattern", "REGEX",
             "lines that match it are the chapters (RE2's syntax)",
             [=](const std::string& text) { book->chapter_pattern = text; });
}

void AddEffortFlag(FlagSet& flags, BookOptions* book) {
  flags.Group("The book");
  flags.Text(
      "--effort", "N|full",
      "of a book that the context does not hold read the parts whose "
      "words have most to do with a question, of at most N tokens "
      "together (default full: all)",
      [=](const std::string& text) {
        const bool full = text == "full";
        const std::optional<int64_t> n = full ? 0 : ParseTokenCount(text);
        if (!n.has_value() || (*n < 1 && !full)) {
          FlagSet::Reject("--effort", "a count of tokens, or full", text);
        }
        book->effort = *n;
      });
}

void AddCacheFlag(FlagSet& flags, Options* options) {
  options->session.prompt_cache_dir = PromptCacheFolder();
  flags.Switch("--no-cache",
               "read the document even if it was read before, and keep "
               "nothing of it",
               [=] {
                 options->session.prompt_cache_dir.clear();
                 options->book.keeps = false;
               });
  AddCacheSizeFlag(flags, &options->session);
}

void AddDocument(FlagSet& flags, Options* options) {
  flags.Positional("FILE",
                   "EPUB, FB2, PDF, RTF, HTML or folder, text; - is stdin",
                   FlagSet::Need::kRequired, &options->document);
  BookOptions* book = &options->book;
  AddCacheFlag(flags, options);
  flags.Group("The book");
  flags.Switch("--toc", "print its table of contents, and read nothing",
               [=] { book->toc = true; });
  AddChoiceFlags(flags, book);
  flags.Switch("--restart",
               "begin anew, whatever is kept of a reading that was stopped",
               [=] { book->restart = true; });
  flags.Group("Output");
  flags.Text("--output", "FILE", "write notes of it to a file, too",
             [=](const std::string& path) { book->output = path; });
  flags.Choice("--format", {"text", "md", "html"},
               "of the notes (default: as FILE ends, or text)", &book->format);
}

void AddAnswerFlags(FlagSet& flags, const std::string& instruction,
                    BookOptions* book) {
  flags.Group("The answer");
  flags.Int("--words", "about so many words", 1, 1'000'000,
            [=](int64_t n) { book->words = n; });
  flags.Text("--language", "NAME", "in this language",
             [=](const std::string& name) { book->language = name; });
  flags.Text("--instruction", "TEXT", instruction,
             [=](const std::string& text) { book->instruction = text; });
}

void AddSummarize(FlagSet& flags, Options* options) {
  AddDocument(flags, options);
  SetReadingDefaults(/*max_tokens=*/512, &options->sampling);
  AddGenerationFlags(flags, options);
  AddTemplateFlags(flags, options);
  AddAtOnceFlag(flags, &options->session);
  AddAnswerFlags(flags, "what to do with the text, instead", &options->book);
  flags.Group("The book");
  flags.Switch("--each", "a summary of each chapter by itself",
               [=] { options->book.each = true; });
  flags.Group("Output");
  flags.Switch("--no-talk", "take no questions after it, on a terminal either",
               [=] { options->talk = false; });
}

void AddAsk(FlagSet& flags, Options* options) {
  AddDocument(flags, options);
  AddEffortFlag(flags, &options->book);
  flags.Positionals("QUESTION",
                    "one or more, each in quotes; without any they are taken "
                    "as in chat",
                    FlagSet::Need::kOptional, &options->questions);
  SetReadingDefaults(/*max_tokens=*/256, &options->sampling);
  AddGenerationFlags(flags, options);
  AddGrammarFlags(flags, &options->sampling);
  AddTemplateFlags(flags, options);
  AddAtOnceFlag(flags, &options->session);
  AddAnswerFlags(flags, "what to ask of the text, before the question, instead",
                 &options->book);
}

void AddChat(FlagSet& flags, Options* options) {
  flags.Group("The book");
  flags.Text("--book", "FILE", "talk about this text, which is read once",
             [=](const std::string& path) { options->document = path; });
  AddChoiceFlags(flags, &options->book);
  AddCacheFlag(flags, options);
  AddEffortFlag(flags, &options->book);
  SetReadingDefaults(/*max_tokens=*/512, &options->sampling);
  AddGenerationFlags(flags, options);
  AddGrammarFlags(flags, &options->sampling);
  AddTemplateFlags(flags, options);
}

void AddGenerate(FlagSet& flags, Options* options) {
  flags.StrayArgumentsAre({.file = "-f", .number = "-p", .text = "-p"});
  AddPromptFlag(flags, &options->input);
  AddFileFlag(flags, &options->input);
  AddTokensFlag(flags, &options->input);
  AddGenerationFlags(flags, options);
  AddGrammarFlags(flags, &options->sampling);
  AddAtOnceFlag(flags, &options->session);
  AddSeedsFlag(flags, &options->sampling);
}

void AddEval(FlagSet& flags, Options* options) {
  flags.StrayArgumentsAre({.file = "-f", .number = "-f", .text = "-f"});
  AddFileFlag(flags, &options->input);
  AddTokensFlag(flags, &options->input);
  AddSessionFlags(flags, options);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddVerifyAgainstFlag(flags, &options->sampling);
  flags.Tokens(
      "--prefill",
      "read the first N tokens at once, and score the rest as they are "
      "generated, one at a time (default 0)",
      0, kMaxTokens, [=](int64_t n) { options->eval.prefill = n; });
  flags.Int("--ubatch-size",
            "feed the text N tokens at a time; the numbers do not depend on it",
            1, kMaxTokens, [=](int64_t n) { options->eval.rows_per_step = n; });
  AddJsonFlag(flags, options);
  flags.Text(
      "--logits", "OUT.npy",
      "write the model's scores of every token, float32 [tokens, vocabulary]",
      [=](const std::string& path) { options->eval.logits_path = path; });
  AddProgressFlag(flags, options);
}

void AddParseSpecial(FlagSet& flags, Options* options) {
  flags.Switch("--parse-special",
               "<|im_start|> and its like are tokens, not their letters",
               [=] { options->tokens.parse_special = true; });
}

void AddTokenize(FlagSet& flags, Options* options) {
  flags.StrayArgumentsAre({.file = "-f", .number = "-p", .text = "-p"});
  AddPromptFlag(flags, &options->input);
  AddFileFlag(flags, &options->input);
  flags.Switch("--add-bos",
               "begin with the token that begins a text, where the checkpoint "
               "says so",
               [=] { options->tokens.add_bos = true; });
  AddParseSpecial(flags, options);
  AddModelFlags(flags, &options->model);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddDetokenize(FlagSet& flags, Options* options) {
  flags.Positionals("ID", "token ids; default: from stdin",
                    FlagSet::Need::kOptional, &options->tokens.ids);
  flags.NotBuilt({"--add-bos"});
  AddTokensFlag(flags, &options->input);
  AddParseSpecial(flags, options);
  AddModelFlags(flags, &options->model);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddText(FlagSet& flags, Options* options) {
  flags.Positional("FILE",
                   "EPUB, FB2, PDF, RTF, HTML or folder, text; - is stdin",
                   FlagSet::Need::kRequired, &options->document);
  AddChoiceFlags(flags, &options->book);
  AddJsonFlag(flags, options);
}

void AddInspect(FlagSet& flags, Options* options) {
  flags.Positional("MODEL", "the same as --model", FlagSet::Need::kOptional,
                   &options->document);
  AddModelFlags(flags, &options->model);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddPlan(FlagSet& flags, Options* options) {
  flags.StrayArgumentsAre({.file = "-m", .number = "-c", .text = "-m"});
  options->session.cache_dir = CacheFolder();
  options->session.prompt_cache_dir = PromptCacheFolder();
  flags.Switch("--no-cache", "of texts that are not kept: none is on disk",
               [=] { options->session.prompt_cache_dir.clear(); });
  AddCacheSizeFlag(flags, &options->session);
  AddSessionFlags(flags, options);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddDraftFlags(flags, &options->sampling);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddServe(FlagSet& flags, Options* options) {
  RequestOptions* requests = &options->requests;
  flags.Group("Server");
  flags.Text("--host", "ADDRESS",
             "listen at this address (default 127.0.0.1: for programs of this "
             "machine alone)",
             [=](const std::string& host) { requests->host = host; });
  flags.Int("--port", "... and port (default 8080; 0: any that is free)", 0,
            65535, [=](int64_t port) { requests->port = port; });
  flags.Text("--api-key-file", "FILE",
             "answer only those who send one of these keys, a line each",
             [=](const std::string& path) { requests->api_key_file = path; });
  flags.Int("--queue",
            "requests that may wait for those that are answered (default 64); "
            "others are refused",
            0, 1'000'000, [=](int64_t n) { requests->queue = n; });
  AddAnsweringFlags(flags, options);
}

void AddBatch(FlagSet& flags, Options* options) {
  flags.Positional("IN.jsonl", "a request a line, in OpenAI's form",
                   FlagSet::Need::kRequired, &options->document);
  flags.Group("Output");
  flags.Text("-o,--output", "OUT.jsonl",
             "the answers, a line each, as they come; those that are there "
             "are not asked for again",
             [=](const std::string& path) { options->requests.output = path; });
  AddJsonFlag(flags, options);
  AddAnsweringFlags(flags, options);
}

void AddCache(FlagSet& flags, Options* options) {
  options->session.cache_dir = CacheFolder();
  options->session.prompt_cache_dir = PromptCacheFolder();
  flags.Positional("list|clear", "say what is kept, or remove it",
                   FlagSet::Need::kRequired, &options->cache_action);
  AddJsonFlag(flags, options);
}

void AddBench(FlagSet& flags, Options* options) {
  flags.StrayArgumentsAre({.file = "-m", .number = "-p", .text = "-m"});
  options->session.cache_dir = CacheFolder();
  BenchOptions* bench = &options->bench;
  flags.Group("Tests");
  flags.IntList("-p,--n-prompt",
                "tokens to read, each a test (default 512; 0: none)", 0,
                kMaxTokens, &bench->prompts);
  flags.IntList("-n,--n-gen",
                "tokens to generate, each a test (default 128; 0: none)", 0,
                kMaxTokens, &bench->generations);
  flags.IntList("-d,--n-depth", "tokens read before them (default 0)", 0,
                kMaxTokens, &bench->depths);
  flags.IntList("--parallel",
                "texts to generate at once, each a test (default 1); more "
                "need -d above 0",
                1, kMaxParallel, &bench->parallel);
  flags.Int("-r,--repetitions", "of every test (default 5)", 1, 10'000,
            [=](int64_t n) { bench->repetitions = n; });
  flags.Switch("--no-warmup", "time the first run of a test, too",
               [=] { bench->warms_up = false; });
  flags.Switch("--fill",
               "depths are not read, but for their last 64 tokens: K and V "
               "are random",
               [=] { bench->fill = true; });
  AddFileFlag(flags, &options->input);
  AddTokensFlag(flags, &options->input);
  AddJsonFlag(flags, options);
  flags.Choice("-o,--output", {"md", "csv", "json", "jsonl"},
               "how rows are written (default md; --json: json)",
               &bench->output);
  AddProgressFlag(flags, options);
  AddModelFlags(flags, &options->model);
  flags.IntList("-t,--threads", "default: all CPUs", 1, kMaxThreads,
                &bench->threads);
  AddCacheTypeFlags(flags, &options->session);
  AddRunFlags(flags, &options->model);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddSpeculationFlags(flags, &options->sampling);
  AddVerifyAgainstFlag(flags, &options->sampling);
  AddDistributionFlags(flags, &options->sampling);
}

}  // namespace

const std::array<CommandFlags, 14> kCommands = {{
    {"summarize",
     "a summary of a document, then questions",
     "Summarizes a document, in parts where it is longer than the context.",
     AddSummarize,
     {"--toc", "--chapters", "--words", "--language", "--output", "-n", "-m",
      "--no-talk", "--quiet", "--json"},
     {"tiercel summarize chapter.txt",
      "tiercel summarize book.epub --words 300 --output notes.html",
      "tiercel summarize book.pdf --chapters 3,5-7"}},
    {"ask",
     "answers to questions about a document",
     "Answers questions about a document, in parts beyond the context.",
     AddAsk,
     {"--chapters", "--output", "-n", "-m", "-c", "--quiet", "--json"},
     {"tiercel ask chapter.txt \"Who is Ahab?\" \"Where does it end?\"",
      "tiercel ask chapter.txt"}},
    {"chat",
     "a conversation, about a text or nothing",
     "A conversation, about a text that fits the context or nothing; from a "
     "pipe, a question a line.",
     AddChat,
     {"--book", "--chapters", "-n", "-s", "--temp", "-m", "-c", "--quiet"},
     {"tiercel chat", "tiercel chat --book chapter.txt",
      "echo \"What is a falcon?\" | tiercel chat"}},
    {"generate",
     "a text continued as it is",
     "Continues a text as it is.",
     AddGenerate,
     {"-p", "-f", "-n", "-s", "--temp", "--stop", "-m", "-c", "--policy",
      "--quiet", "--json"},
     {"tiercel generate -p \"The falcon\" -n 64",
      "tiercel generate -f story.txt --temp 0.8 --seeds 1:3"}},
    {"eval",
     "how well the model predicts a text",
     "Says how well the model predicts a text: log-likelihood, perplexity.",
     AddEval,
     {"-f", "--tokens", "-m", "-c", "--policy", "--logits", "--json"},
     {"tiercel eval -f chapter.txt"}},
    {"tokenize",
     "the numbers that the model reads for a text",
     "Turns a text into the numbers the model reads.",
     AddTokenize,
     {"-p", "-f", "--add-bos", "--parse-special", "-m", "--json"},
     {"tiercel tokenize -p \"The falcon\"",
      "tiercel tokenize <book.txt >book.tokens"}},
    {"detokenize",
     "the text of such numbers",
     "Turns such numbers back into text.",
     AddDetokenize,
     {"--tokens", "--parse-special", "-m", "--json"},
     {"tiercel detokenize 504 29374", "tiercel detokenize <book.tokens"}},
    {"text",
     "a document as it is read",
     "Prints a document as it is read, without a model.",
     AddText,
     {"--chapters", "--pages", "--json"},
     {"tiercel text book.epub", "tiercel text book.pdf --pages 10-12 --json"}},
    {"inspect",
     "what a checkpoint is, and what of it is used",
     "Says what a checkpoint is and what of it is used.",
     AddInspect,
     {"-m", "--json"},
     {"tiercel inspect model.gguf", "tiercel inspect --json"}},
    {"plan",
     "memory and time, before anything is loaded",
     "Says what memory and time a context takes, before anything is loaded.",
     AddPlan,
     {"-c", "-m", "--device-memory", "--simulate", "--policy", "--json"},
     {"tiercel plan -c 8k", "tiercel plan -c 8k --device-memory 2GiB"}},
    {"bench",
     "how fast texts are read and generated",
     "Measures how fast texts are read and generated, in llama-bench's form.",
     AddBench,
     {"-p", "-n", "-d", "-r", "-f", "-o", "-m", "-t", "--policy"},
     {"tiercel bench -p 512 -n 32 -d 0,2048",
      "tiercel bench -n 64 -d 4000 -f book.txt --draft ngram"}},
    {"serve",
     "a server for a browser and for OpenAI's clients",
     "Serves OpenAI's clients, and a page to read with at "
     "http://127.0.0.1:8080/.",
     AddServe,
     {"--host", "--port", "--api-key-file", "--parallel", "-n", "-m", "-c"},
     {"tiercel serve", "tiercel serve --port 8081 --parallel 8 -c 8k"}},
    {"batch",
     "a file of requests, answered into another",
     "Answers a file of requests in OpenAI's batch form; goes on where it was "
     "stopped.",
     AddBatch,
     {"-o", "--parallel", "-n", "-m", "-c", "--json"},
     {"tiercel batch in.jsonl -o out.jsonl"}},
    {"cache",
     "what is kept on disk, listed or removed",
     "Lists or removes what is kept of texts and of this machine's rates.",
     AddCache,
     {"--json"},
     {"tiercel cache list", "tiercel cache clear"}},
}};

}  // namespace tiercel::cli
