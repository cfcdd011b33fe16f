#include "models/chat/chat_template.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "nlohmann/json.hpp"

namespace tiercel {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::vector<ChatPiece>> Render(
    std::string_view source, const ChatTemplate::Inputs& inputs) {
  absl::StatusOr<std::unique_ptr<ChatTemplate>> chat =
      ChatTemplate::Parse(source);
  if (!chat.ok()) return chat.status();
  return (*chat)->Render(inputs);
}

std::string Joined(const std::vector<ChatPiece>& pieces) {
  std::string text;
  for (const ChatPiece& piece : pieces) text += piece.text;
  return text;
}

// Renders the pieces in brackets: [template] and <message>.
std::string Shown(std::string_view source, std::string content,
                  std::string role = "user") {
  ChatTemplate::Inputs inputs;
  inputs.messages = {{std::move(role), std::move(content)}};
  const auto pieces = Render(source, inputs);
  if (!pieces.ok()) return std::string(pieces.status().message());
  std::string shown;
  for (const ChatPiece& piece : *pieces) {
    shown +=
        piece.from_message ? "<" + piece.text + ">" : "[" + piece.text + "]";
  }
  return shown;
}

absl::Status ErrorOf(std::string_view source) {
  const absl::Status status = Render(source, {}).status();
  EXPECT_EQ(CodeOf(status), "template_error") << source.substr(0, 200);
  return status;
}

std::string Repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

// --- against Jinja2 itself (tests/golden/make_chat.py)

TEST(ChatTemplateTest, RendersWhatJinja2Renders) {
  std::ifstream file("tests/golden/chat.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 100u);
  for (const nlohmann::json& c : cases) {
    SCOPED_TRACE(c["name"].get<std::string>());
    ChatTemplate::Inputs inputs;
    inputs.add_generation_prompt = c["add_generation_prompt"];
    inputs.bos_token = "<s>";
    inputs.eos_token = "</s>";
    for (const nlohmann::json& message : c["messages"]) {
      inputs.messages.push_back({message["role"], message["content"]});
    }
    const auto pieces = Render(c["template"].get<std::string>(), inputs);
    if (c.contains("error")) {
      EXPECT_EQ(CodeOf(pieces.status()), "template_error");
    } else {
      ASSERT_TRUE(pieces.ok()) << pieces.status().message();
      EXPECT_EQ(Joined(*pieces), c["text"].get<std::string>());
    }
  }
}

TEST(ChatTemplateTest, TellsTheTimeAsDatetimeDoes) {
  const auto time = [](const std::string& format) {
    return Shown("{{ strftime_now('" + format + "') }}", "");
  };
  EXPECT_EQ(time("<%z%Z>"), "[<>]");  // a time without a zone
  EXPECT_EQ(time("%f").size(), std::string("[123456]").size());
  EXPECT_EQ(time("%h"), time("%b"));
  EXPECT_EQ(time("%0d%_d%-d%^a%%").back(), ']');
  EXPECT_EQ(time("%n%t"), "[\n\t]");
  for (const char* format : {"%", "%-", "%Q", "%--d", "%E"}) {
    EXPECT_THAT(time(format), HasSubstr("unknown conversion")) << format;
  }
}

// --- text of messages never becomes text of the template

TEST(ChatTemplateTest, MessagesStayApartInAPlainTemplate) {
  EXPECT_EQ(
      Shown("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + "
            "m['content'] + '<|im_end|>' }}{% endfor %}",
            "<|im_end|>"),
      "[<|im_start|>user\n]<<|im_end|>>[<|im_end|>]");
}

TEST(ChatTemplateTest, EveryOperationKeepsTheOrigin) {
  const struct {
    const char* expression;
    const char* shown;
  } kCases[] = {
      {"c", "<ab>"},
      {"c ~ c", "<abab>"},
      {"'x' ~ c ~ 1", "[x]<ab>[1]"},
      {"c * 2", "<abab>"},
      {"c[::-1]", "<ba>"},
      {"c[0]", "<a>"},
      {"('x' + c + 'y')[::-1]", "[y]<ba>[x]"},
      {"('x' + c + 'y')[1:3]", "<ab>"},
      {"(' ' + c + ' ') | trim", "<ab>"},
      {"('x' + c).strip('xa')", "<b>"},
      {"c | upper", "<AB>"},
      {"c.title()", "<Ab>"},
      {"c | replace('a', 'x')", "[x]<b>"},
      {"'x-y' | replace('-', c)", "[x]<ab>[y]"},
      {"'x-y'.replace('-', c)", "[x]<ab>[y]"},
      {"c.split('a')[1]", "<b>"},
      {"(c ~ ',' ~ c).split(',') | join('+')", "<ab>[+]<ab>"},
      {"[c, 'x'] | join", "<ab>[x]"},
      {"c | list | join", "<ab>"},
      {"c | reverse", "<ba>"},
      {"[c] | first", "<ab>"},
      {"[c]", "[[']<ab>[']]"},
      {"{'k': c} | tojson", "[{\"k\": \"]<ab>[\"}]"},
      {"{c: 1} | tojson", "[{\"]<ab>[\": 1}]"},
      {"c | indent(2, true)", "[  ]<ab>"},
      {"c.partition('a') | last", "<b>"},
      {"(c ~ 'x') | e", "<ab>[x]"},
      {"'<{}>'.format(c)", "[<]<ab>[>]"},
      {"'{:->4}{!s}'.format(c, c)", "[--]<abab>"},
      {"(c ~ '{}').format('x')", "<ab>[x]"},
      {"'%4s|%s' % (c, 1)", "[  ]<ab>[|1]"},
      {"('%s' ~ c) % 'x'", "[x]<ab>"},
      {"'%s' | format(c)", "<ab>"},
      {"c.center(6, '*')", "[**]<ab>[**]"},
      {"c.zfill(3) ~ c.rjust(3)", "[0]<ab>[ ]<ab>"},
      {"c.swapcase()", "<AB>"},
      {"('x' ~ c) | wordwrap(2)", "[x]<a>[\n]<b>"},
      {"c | truncate(1, true, '', 0)", "<a>"},
      {"c | urlencode", "<ab>"},
      {"{'k': c} | xmlattr", "[ k=\"]<ab>[\"]"},
      {"('<i>' ~ c) | striptags", "<ab>"},
      {"[c] | batch(1) | first | first", "<ab>"},
      {"cycler(c).next() ~ joiner(c)()", "<ab>"},
      {"[c, 'x'] | sort | join", "<ab>[x]"},
      {"[c] | map('upper') | join", "<AB>"},
      {"c if c else 'x'", "<ab>"},
      {"none or c", "<ab>"},
      {"c | default('x')", "<ab>"},
      {"c | string | safe", "<ab>"},
      {"c | length", "[2]"},
      {"c == 'ab'", "[True]"},
      {"m(c)", "[(]<ab>[)]"},
      {"block", "[<]<ab>[>]"},
      {"ns.x", "<ab>"},
  };
  for (const auto& [expression, shown] : kCases) {
    const std::string source = std::string(
                                   "{% set c = messages[0].content %}"
                                   "{% macro m(x) %}({{ x }}){% endmacro %}"
                                   "{% set block %}<{{ c }}>{% endset %}"
                                   "{% set ns = namespace(x=c) %}{{ ") +
                               expression + " }}";
    EXPECT_EQ(Shown(source, "ab"), shown) << expression;
  }
}

TEST(ChatTemplateTest, EscapesKeepTheOriginOfWhatTheyEscape) {
  EXPECT_EQ(Shown("{{ messages[0].content | tojson }}", "\n\""),
            "[\"]<\\n\\\">[\"]");
  EXPECT_EQ(Shown("{{ messages[0].content | tojson(ensure_ascii=true) }}", "é"),
            "[\"]<\\u00e9>[\"]");
}

TEST(ChatTemplateTest, RolesAreMessagesToo) {
  EXPECT_EQ(Shown("{{ messages[0].role }}", "x", "<s>"), "<<s>>");
}

TEST(ChatTemplateTest, TokensAreTheTemplates) {
  ChatTemplate::Inputs inputs;
  inputs.bos_token = "<s>";
  const auto pieces = Render("{{ bos_token }}a", inputs);
  ASSERT_TRUE(pieces.ok());
  ASSERT_EQ(pieces->size(), 1u);
  EXPECT_EQ((*pieces)[0].text, "<s>a");
  EXPECT_FALSE((*pieces)[0].from_message);
}

TEST(ChatTemplateTest, VariablesAreThoseOfTheJson) {
  const char* source =
      "{{ thinking }} {{ effort }} {{ n + 1 }} {{ f }} {{ l[1] }} {{ d.k }} "
      "{{ none is none }}";
  ChatTemplate::Inputs inputs;
  inputs.settings.think = true;
  inputs.settings.variables = nlohmann::ordered_json::parse(
      R"({"effort": "high", "n": 2, "f": 0.5, "l": [1, "b"],
          "d": {"k": true}, "none": null})");
  EXPECT_EQ(Joined(*Render(source, inputs)), "True high 3 0.5 b True True");
  // A variable comes before --think.
  inputs.settings.variables["thinking"] = false;
  EXPECT_EQ(Joined(*Render("{{ thinking }}", inputs)), "False");
  for (const char* const refused :
       {"[1]", R"({"messages": 1})",
        R"({"x": [{"y": 18446744073709551615}]})"}) {
    inputs.settings.variables = nlohmann::ordered_json::parse(refused);
    EXPECT_EQ(CodeOf(Render("x", inputs).status()), "invalid_argument");
  }
}

// As Python's dictionaries do.
TEST(ChatTemplateTest, VariablesKeepTheirOrder) {
  ChatTemplate::Inputs inputs;
  inputs.settings.variables = nlohmann::ordered_json::parse(
      R"({"d": {"z": 1, "a": {"y": 2, "b": 9223372036854775807}}})");
  EXPECT_EQ(Joined(*Render("{{ d | tojson }}", inputs)),
            R"({"z": 1, "a": {"y": 2, "b": 9223372036854775807}})");
}

TEST(ChatTemplateTest, ThoughtsAreThereForTemplatesThatWriteThem) {
  ChatTemplate::Inputs inputs;
  inputs.messages = {{"user", "q"}, {"assistant", "a", "hm"}, {"user", "r"}};
  EXPECT_EQ(Joined(*Render("{% for m in messages %}{% if m.reasoning_content "
                           "is defined %}<{{ m.reasoning_content }}>{% endif %}"
                           "{{ m.content }}{% endfor %}",
                           inputs)),
            "q<hm>ar");
}

TEST(ChatTemplateTest, ThinkingIsUndefinedUnlessSet) {
  const char* source =
      "{{ enable_thinking is defined }} {{ enable_thinking | default('-') }}";
  ChatTemplate::Inputs inputs;
  EXPECT_EQ(Joined(*Render(source, inputs)), "False -");
  inputs.settings.think = false;
  EXPECT_EQ(Joined(*Render(source, inputs)), "True False");
}

// --- errors name the line and the fault

TEST(ChatTemplateTest, ErrorsNameTheLine) {
  const struct {
    const char* source;
    const char* message;
  } kCases[] = {
      {"a\n\n{{ 1 + }}", "line 3: expected an expression, got '}}'"},
      {"\n{% if %}", "line 2: expected an expression"},
      {"{% for x in y %}\n", "expected {% endfor %}"},
      {"{% endif %}", "line 1: unknown tag 'endif'"},
      {"{{ '%s' % (1, 2) }}", "there are too many values"},
      {"{{ '%s%s' % 1 }}", "there are too few values"},
      {"{{ '%d' % 'x' }}", "%d: got string, needs a number"},
      {"{{ '%(k)s' % {'a': 1} }}", "there is no value 'k'"},
      {"{{ '%y' % 1 }}", "unknown conversion"},
      {"{{ '{}{}'.format(1) }}", "a field names no argument"},
      {"{{ '{:d}'.format('x') }}", "the specification is of a number"},
      {"{{ '{:999999}'.format(1) }}", "a width is over"},
      {"{{ 'a'.index('x') }}", "index: the text is not in the string"},
      {"{{ 'a'.ljust(3, 'xy') }}", "the fill is one character"},
      {"{{ cycler() }}", "cycler: takes one item or more"},
      {"{{ [1] | batch(0) }}", "batch: needs a number from 1"},
      {"{% include 'x' %}", "unknown tag 'include'"},
      {"x\n{{ 'a }}", "line 2: a string has no end"},
      {"{{ (1 }}", "line 1: unexpected '}'"},
      {"{{ (1 2) }}", "expected ')', got a number"},
      {"{{ 1", "a tag has no end"},
      {"{# x", "a comment has no end"},
      {"{% raw %}", "a raw block has no end"},
      {"{{ ? }}", "unexpected character '?'"},
      {"{% break %}", "outside of a loop"},
      {"{% set true = 1 %}", "a constant cannot be assigned to"},
      {"{{ 99999999999999999999 }}", "out of range"},
      {"{{ f(a=1, 2) }}", "a positional argument follows"},
      {"\n{{ nope.x }}", "line 2: 'nope' is undefined and has no 'x'"},
      {"{{ nope() }}", "'nope' is undefined"},
      {"{{ nope + 'x' }}", "undefined 'nope' and string"},
      {"{{ 1 + 'x' }}", "'+' cannot be applied to integer and string"},
      {"{{ 1 // 0 }}", "division by zero"},
      {"{{ 1 % 0 }}", "division by zero"},
      {"{{ 1.0 / 0 }}", "division by zero"},
      {"{{ 9223372036854775807 + 1 }}", "out of range"},
      {"{{ 2 ** 64 }}", "out of range"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "out of range"},
      {"{{ 'a' | nosuch }}", "no filter is named 'nosuch'"},
      {"{{ 'a' is nosuch }}", "no test is named 'nosuch'"},
      {"{{ [1].append(2) }}", "'append' is undefined"},
      {"{{ 1 < 'a' }}", "cannot order integer and string"},
      {"{% for x in 5 %}{% endfor %}", "integer cannot be iterated"},
      {"{% set a, b = [1] %}", "cannot unpack 1 values into 2 names"},
      {"{% set x = 1 %}{% set x.y = 2 %}", "needs a namespace"},
      {"{{ range(1, 2, 0) }}", "the step is zero"},
      {"{{ nope | tojson }}", "is no JSON"},
      {"{{ raise_exception('turn\n' ~ 'order') }}",
       "the template refuses: turn order"},
      {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "takes 1"},
      {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "no argument 'b'"},
      {"{{ strftime_now('%Q') }}", "unknown conversion"},
      {"{{ 'abc'[::0] }}", "step is zero"},
      {"{{ '99999999999999999999' | int }}", "an integer is out of range"},
      {"{{ '9223372036854775808' | int }}", "an integer is out of range"},
      {"{{ '1e20' | int }}", "an integer is out of range"},
      {"{{ 1e20 | int }}", "an integer is out of range"},
      {"{{ (1e308 * 10) | int }}", "an integer is out of range"},
      {"{{ nope | int }}", "int: got undefined value, needs a number"},
      {"{{ nope | float(5) }}", "float: got undefined value, needs a number"},
      {"{{ {'a': 1}.get('a', default=5) }}", "get: takes no names"},
      {"{{ ['a'] | sum(start='') }}", "sum: got string"},
      {"{{ [1, 'a'] | sum }}", "'+' cannot be applied to integer and string"},
      {"{{ [[1]] | sum }}", "'+' cannot be applied to integer and list"},
      {"{{ dict([('a', 1, 2)]) }}", "dict: needs pairs"},
      {"{{ dict([1]) }}", "integer cannot be iterated"},
      {"{{ dict([[[1], 2]]) }}", "dict: a list or a dict is no key"},
      {"{{ dict([({}, 2)]) }}", "dict: a list or a dict is no key"},
      {"{{ dict([], []) }}", "dict: takes one dict or list of pairs"},
      {"{{ '{0.x.y}'.format(1) }}", "is undefined and has no"},
  };
  for (const auto& [source, message] : kCases) {
    EXPECT_THAT(std::string(ErrorOf(source).message()), HasSubstr(message))
        << source;
  }
}

// --- a hostile template ends soon and small

TEST(ChatTemplateTest, HostileTemplatesEndInAnError) {
  const std::string deep_list =
      "{% set ns = namespace(x=1) %}{% for i in range(100000) %}"
      "{% set ns.x = [ns.x] %}{% endfor %}";
  const std::string cases[] = {
      "{{ " + Repeated("(", 10'000) + "1" + Repeated(")", 10'000) + " }}",
      "{{ " + Repeated("[", 10'000) + Repeated("]", 10'000) + " }}",
      "{{ " + Repeated("{'a':", 10'000) + "1" + Repeated("}", 10'000) + " }}",
      "{{ " + Repeated("not ", 10'000) + "1 }}",
      "{{ " + Repeated("-", 10'000) + "1 }}",
      "{{ " + Repeated("1 if ", 10'000) + "1 }}",
      "{{ " + Repeated("1 + ", 10'000) + "1 }}",
      "{{ x" + Repeated(".a", 10'000) + " }}",
      "{{ x" + Repeated("|a", 10'000) + " }}",
      "{{ x" + Repeated("(", 10'000) + " }}",
      Repeated("{% if 1 %}", 10'000) + Repeated("{% endif %}", 10'000),
      Repeated("{% for x in [1] %}", 10'000),
      Repeated("{% set x %}", 10'000),
      "{% set " + Repeated("(", 10'000) + "x %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{% for i in [1] %}{% if n %}{% set x %}{{ m(n) ~ m(n) "
      "}}{% endset %}{% endif %}{% endfor %}{% endmacro %}{{ m(1) }}",
      "{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}"
      "{% call m() %}{{ r() }}{% endcall %}{% endmacro %}{{ r() }}",
      "{{ range(10**9) }}",
      "{{ range(-9223372036854775807, 9223372036854775807) }}",
      "{{ 'x' * 10**9 }}",
      "{{ 'x' * 10**18 }}",
      "{{ [1] * 10**9 }}",
      "{{ [] * 10**18 ~ 'x' * 10**9 }}",
      "{{ 'x' | indent(10**9, true) }}",
      "{{ ('x' * 10**6) | replace('', 'y' * 10**6) }}",
      "{{ ('x' * 10**6) | list | join('y' * 10**6) }}",
      "{{ ('x ' * 10**7).split() }}",
      "{% set ns = namespace(s='x') %}{% for i in range(100) %}"
      "{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% for i in range(10**6) %}{% for j in range(10**6) %}{% endfor %}"
      "{% endfor %}",
      "{% for i in range(10**6) %}{{ 'x' * 1000 }}{% endfor %}",
      "{% for i in range(10**6) %}{% set n = namespace(a=i) %}{% endfor %}",
      "{% for i in range(10**6) %}{% macro m() %}{% endmacro %}{% endfor %}",
      deep_list,
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
      "{% set a = namespace(x=[1]) %}{% set b = namespace(x=[1]) %}"
      "{% for i in range(60) %}{% set a.x = [a.x, a.x] %}"
      "{% set b.x = [b.x, b.x] %}{% endfor %}{{ a.x == b.x }}",
      "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x | tojson }}",
      "{% set ns = namespace(f='') %}{% for i in range(1000) %}"
      "{% set ns.f = {'a': ns.f}.get %}{% endfor %}",
      "{% set l = range(10**6) | list %}{{ l | unique | list }}",
      "{{ 'a' | map('map', 'map') | list }}{{ 1 // 0 }}",
      "{{ ([[1]] * 10**6) | sum(start=[]) }}",
      "{{ dict(range(10**6) | batch(2)) }}",
      std::string((1 << 20) + 1, 'x'),
  };
  for (const std::string& source : cases) {
    EXPECT_THAT(std::string(ErrorOf(source).message()), HasSubstr("line 1: "));
  }
}

TEST(ChatTemplateTest, CyclesThroughNamespacesAndMacrosAreFreed) {
  // The leak checker of the sanitizer build judges this.
  EXPECT_EQ(Shown("{% set n = namespace() %}{% set n.me = [n] %}"
                  "{% macro m() %}{{ m.name }}{% endmacro %}{% set n.m = m %}"
                  "{% for i in [1, 2] %}{% set n.l = loop %}{% endfor %}"
                  "{{ n.m() }}",
                  ""),
            "[m]");
  const std::string chain =
      "{% set n = namespace(x=1) %}{% for i in range(20000) %}"
      "{% set n.x = namespace(x=n.x) %}{% endfor %}done";
  EXPECT_EQ(Shown(chain, ""), "[done]");
}

TEST(ChatTemplateTest, ALongConversationIsNoAttack) {
  ChatTemplate::Inputs inputs;
  for (int i = 0; i < 5000; ++i) {
    inputs.messages.push_back({i % 2 == 0 ? "user" : "assistant", "text"});
  }
  inputs.messages.push_back({"user", std::string(20 << 20, 'x')});
  const auto pieces = Render(
      "{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] | trim "
      "+ '</>' }}{% endfor %}",
      inputs);
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  EXPECT_EQ(pieces->size(), 5001u * 2 + 1);
  EXPECT_EQ((*pieces)[5000u * 2 + 1].text.size(), size_t{20} << 20);
}

TEST(ChatTemplateTest, BytesThatAreNoUtf8PassThrough) {
  EXPECT_EQ(Shown("{{ messages[0].content | trim }}\xFF", " \xFF\x80 "),
            "<\xFF\x80>[\xFF]");
}

TEST(ChatTemplateTest, EmptyTemplatesWriteNothing) {
  EXPECT_EQ(Shown("", "x"), "");
  EXPECT_EQ(Shown("{# #}", "x"), "");
}

TEST(ChatTemplateTest, TheDateIsWrittenInEnglish) {
  const std::string shown = Shown("{{ strftime_now('%Y-%m-%d %-d%%') }}", "");
  EXPECT_THAT(shown, testing::MatchesRegex(
                         "\\[20[0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9]+%\\]"));
}

// --- where a checkpoint keeps its template

class FakeCheckpoint : public Checkpoint {
 public:
  explicit FakeCheckpoint(Format format)
      : Checkpoint(Need::kAll), format_(format) {}
  Format format() const override { return format_; }
  absl::Status Read(const TensorInfo&, uint64_t,
                    std::span<std::byte>) const override {
    return absl::OkStatus();
  }
  Metadata& metadata_for_test() { return metadata_; }
  nlohmann::json& files() { return side_files_; }

 private:
  const Format format_;
};

std::string TemplateOf(const Checkpoint& checkpoint) {
  const auto chat = ChatTemplate::Create(checkpoint);
  if (!chat.ok()) return CodeOf(chat.status());
  if (*chat == nullptr) return "none";
  return Joined(*(*chat)->Render({}));
}

TEST(ChatTemplateTest, AGgufFileHasItInItsMetadata) {
  FakeCheckpoint checkpoint(Checkpoint::Format::kGguf);
  EXPECT_EQ(TemplateOf(checkpoint), "none");
  checkpoint.metadata_for_test().Set("tokenizer.chat_template", std::string());
  EXPECT_EQ(TemplateOf(checkpoint), "none");
  checkpoint.metadata_for_test().Set("tokenizer.chat_template", 5.0);
  EXPECT_EQ(TemplateOf(checkpoint), "invalid_metadata");
  checkpoint.metadata_for_test().Set("tokenizer.chat_template",
                                     std::string("gguf"));
  EXPECT_EQ(TemplateOf(checkpoint), "gguf");
  checkpoint.metadata_for_test().Set("tokenizer.chat_template",
                                     std::string("{{"));
  EXPECT_EQ(TemplateOf(checkpoint), "template_error");
}

TEST(ChatTemplateTest, ASafetensorsDirectoryHasItInOneOfThreeFiles) {
  FakeCheckpoint checkpoint(Checkpoint::Format::kSafetensors);
  EXPECT_EQ(TemplateOf(checkpoint), "none");
  checkpoint.files()["chat_template.json"]["chat_template"] = "processor";
  EXPECT_EQ(TemplateOf(checkpoint), "processor");
  checkpoint.files().erase("chat_template.json");
  nlohmann::json& config = checkpoint.files()["tokenizer_config.json"];
  for (const nlohmann::json& absent : {nlohmann::json(), nlohmann::json("")}) {
    config["chat_template"] = absent;
    EXPECT_EQ(TemplateOf(checkpoint), "none");
  }
  config["chat_template"] = "config";
  EXPECT_EQ(TemplateOf(checkpoint), "config");
  config["chat_template"] = nlohmann::json::parse(
      R"([{"name":"tool_use","template":"t"},{"name":"default","template":"d"}])");
  EXPECT_EQ(TemplateOf(checkpoint), "d");
  config["chat_template"][1]["name"] = "rag";
  EXPECT_EQ(TemplateOf(checkpoint), "template_error");
  config["chat_template"].erase(1);
  EXPECT_EQ(TemplateOf(checkpoint), "t");
  for (const char* const named :
       {R"({"tool_use":"t","default":"d"})", R"({"rag":"d"})"}) {
    config["chat_template"] = nlohmann::json::parse(named);
    EXPECT_EQ(TemplateOf(checkpoint), "d") << named;
  }
  config["chat_template"] = nlohmann::json::array();
  EXPECT_EQ(TemplateOf(checkpoint), "template_error");
  config["chat_template"] = 5;
  EXPECT_EQ(TemplateOf(checkpoint), "template_error");
  checkpoint.files()["chat_template.jinja"] = "file";
  EXPECT_EQ(TemplateOf(checkpoint), "file");
}

}  // namespace
}  // namespace tiercel
