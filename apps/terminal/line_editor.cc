#include "apps/terminal/line_editor.h"

#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cwchar>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/terminal/output.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

constexpr wchar_t kReplacement = 0xfffd;

// True after the window was resized, or after a stop (Ctrl-Z) in which the
// shell put the terminal into its own mode.
std::atomic<bool> terminal_changed{false};

// Sets terminal_changed at either of the two signals, while it lives.
class NoticeTerminal {
 public:
  NoticeTerminal() {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      terminal_changed.store(true);
      WakeReader();
    };
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, &resized_);
    sigaction(SIGCONT, &action, &continued_);
  }
  ~NoticeTerminal() {
    sigaction(SIGWINCH, &resized_, nullptr);
    sigaction(SIGCONT, &continued_, nullptr);
  }
  NoticeTerminal(const NoticeTerminal&) = delete;
  NoticeTerminal& operator=(const NoticeTerminal&) = delete;

 private:
  struct sigaction resized_ = {};
  struct sigaction continued_ = {};
};

std::string ToUtf8(const wchar_t* text) {
  std::string utf8;
  for (; *text != L'\0'; ++text) {
    char bytes[MB_LEN_MAX];
    std::mbstate_t state = {};
    const size_t size = std::wcrtomb(bytes, *text, &state);
    utf8.append(bytes, size == static_cast<size_t>(-1) ? 0 : size);
  }
  return utf8;
}

// Decodes UTF-8. A byte that begins no character becomes U+FFFD.
std::wstring ToWide(const std::string& text) {
  std::wstring wide;
  std::mbstate_t state = {};
  for (size_t i = 0; i < text.size();) {
    wchar_t character;
    const size_t size =
        std::mbrtowc(&character, text.data() + i, text.size() - i, &state);
    const bool valid = size > 0 && size <= text.size() - i;
    wide.push_back(valid ? character : kReplacement);
    i += valid ? size : 1;
    if (!valid) state = {};
  }
  return wide;
}

}  // namespace

// Holds libedit's handles and its callbacks.
class LineEditor::Libedit {
 public:
  Libedit(const std::string& prompt, HistoryFile file)
      : prompt_(prompt.begin(), prompt.end()), file_(std::move(file)) {}

  absl::Status Open() {
    history_ = history_winit();
    edit_ = el_init("tiercel", stdin, stdout, stderr);
    if (edit_ == nullptr || history_ == nullptr) {
      return Error(Exit::kIo, "no_terminal",
                   "line editing: the terminal cannot be used");
    }
    HistEventW event;
    history_w(history_, &event, H_SETSIZE,
              static_cast<int>(HistoryFile::kMostLines));
    history_w(history_, &event, H_SETUNIQUE, 1);
    for (const std::string& line : file_.Load()) {
      history_w(history_, &event, H_ENTER, ToWide(line + "\n").c_str());
    }
    el_wset(edit_, EL_CLIENTDATA, this);
    el_wset(edit_, EL_HIST, history_w, history_);
    el_wset(edit_, EL_PROMPT, &Libedit::Prompt);
    el_wset(edit_, EL_GETCFN, &Libedit::GetCharacter);
    return absl::OkStatus();
  }

  ~Libedit() {
    if (edit_ != nullptr) el_end(edit_);
    if (history_ != nullptr) history_wend(history_);
  }
  Libedit(const Libedit&) = delete;
  Libedit& operator=(const Libedit&) = delete;

  absl::StatusOr<std::optional<std::string>> Read() {
    const NoticeTerminal notice;
    int size = 0;
    const wchar_t* text = nullptr;
    do {
      // libedit sets its mode only after the prompt shows; a key that answers
      // the prompt (Ctrl-D, say) must not meet the other mode.
      el_wset(edit_, EL_PREP_TERM, 1);
      status_ = absl::OkStatus();
      state_ = {};
      again_.reset();
      text = el_wgets(edit_, &size);
      if (text != nullptr && size > 0) break;
      // The line ended without Return.
      RETURN_IF_ERROR(WriteOut("\n"));
      if (status_.ok()) return std::nullopt;
    } while (IsInterrupted(status_) && ForgetInterrupt());
    if (!status_.ok()) return status_;
    std::string line = std::string(absl::StripAsciiWhitespace(ToUtf8(text)));
    if (!line.empty()) {
      HistEventW event;
      history_w(history_, &event, H_ENTER, text);
      Keep(line);
    }
    return line;
  }

 private:
  // libedit takes the encoding from the locale of its caller. This sets UTF-8
  // for as long as it lives, for this thread alone.
  class Utf8Locale {
   public:
    Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
      // A system without C.UTF-8 gets the user's locale.
      if (locale_ == nullptr) locale_ = newlocale(LC_CTYPE_MASK, "", nullptr);
      if (locale_ != nullptr) before_ = uselocale(locale_);
    }
    ~Utf8Locale() {
      if (locale_ == nullptr) return;
      uselocale(before_);
      freelocale(locale_);
    }
    Utf8Locale(const Utf8Locale&) = delete;
    Utf8Locale& operator=(const Utf8Locale&) = delete;

   private:
    locale_t locale_;
    locale_t before_ = nullptr;
  };

  void Keep(const std::string& line) {
    if (!keeps_) return;
    const absl::Status kept = file_.Append(line);
    keeps_ = kept.ok();
    if (!keeps_) {
      WriteWarnings({absl::StrCat("lines are not kept: ", kept.message())});
    }
  }

  static Libedit& Of(EditLine* edit) {
    void* self = nullptr;
    el_wget(edit, EL_CLIENTDATA, &self);
    return *static_cast<Libedit*>(self);
  }

  static wchar_t* Prompt(EditLine* edit) { return Of(edit).prompt_.data(); }

  // Returns 1 for a character, 0 for the end, -1 for an error (in status_).
  static int GetCharacter(EditLine* edit, wchar_t* character) {
    return Of(edit).Next(character);
  }

  int Next(wchar_t* character) {
    for (;;) {
      char byte;
      if (again_.has_value()) {
        byte = *std::exchange(again_, std::nullopt);
      } else if (const int got = NextByte(&byte); got != 1) {
        return got;
      }
      const bool begins = std::mbsinit(&state_) != 0;
      switch (std::mbrtowc(character, &byte, 1, &state_)) {
        case static_cast<size_t>(-2):  // more is to come
          break;
        case static_cast<size_t>(-1):
          state_ = {};
          if (!begins) again_ = byte;  // may begin the next
          *character = kReplacement;
          return 1;
        default:
          return 1;
      }
    }
  }

  int NextByte(char* byte) {
    for (;;) {
      if (!WaitToRead(STDIN_FILENO, [this] { Redraw(); })) {
        status_ = Interrupted();
        return -1;
      }
      const ssize_t got = read(STDIN_FILENO, byte, 1);
      if (got >= 0) return static_cast<int>(got);
      if (errno == EIO) return 0;  // the terminal went away
      if (errno != EINTR) {
        status_ = SystemError("reading from the terminal");
        return -1;
      }
    }
  }

  void Redraw() {
    if (!terminal_changed.exchange(false)) return;
    el_resize(edit_);
    el_wset(edit_, EL_PREP_TERM, 0);  // else libedit thinks its mode is set
    el_wset(edit_, EL_PREP_TERM, 1);
    el_wset(edit_, EL_REFRESH);
  }

  const Utf8Locale locale_;  // before what depends on it
  std::wstring prompt_;
  const HistoryFile file_;
  bool keeps_ = true;
  HistoryW* history_ = nullptr;
  EditLine* edit_ = nullptr;
  std::mbstate_t state_ = {};
  std::optional<char> again_;  // read, not yet used
  absl::Status status_;
};

absl::StatusOr<std::unique_ptr<LineEditor>> LineEditor::Create(
    const std::string& prompt, HistoryFile history) {
  auto libedit = std::make_unique<Libedit>(prompt, std::move(history));
  RETURN_IF_ERROR(libedit->Open());
  return std::unique_ptr<LineEditor>(new LineEditor(std::move(libedit)));
}

LineEditor::LineEditor(std::unique_ptr<Libedit> libedit)
    : libedit_(std::move(libedit)) {}

LineEditor::~LineEditor() = default;

absl::StatusOr<std::optional<std::string>> LineEditor::Read() {
  return libedit_->Read();
}

}  // namespace tiercel::cli
