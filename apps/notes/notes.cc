#include "apps/notes/notes.h"

#include <cmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// Returns a paragraph of HTML that shows `text` as it is, in cmark's safe mode,
// which drops anything that was not escaped.
std::string HtmlParagraph(std::string_view text) {
  const std::string markdown = EscapeMarkdown(text);
  const std::unique_ptr<char, decltype(&std::free)> html(
      cmark_markdown_to_html(markdown.data(), markdown.size(),
                             CMARK_OPT_DEFAULT | CMARK_OPT_VALIDATE_UTF8),
      &std::free);
  return html == nullptr ? "" : html.get();
}

std::string Text(const Notes& notes) {
  std::string out = notes.title + "\n";
  if (!notes.author.empty()) out += notes.author + "\n";
  for (const Notes::Section& section : notes.sections) {
    out += "\n" + section.heading + "\n";
    for (const Notes::Paragraph& paragraph : section.paragraphs) {
      out += "\n" + paragraph.text + "\n";
      if (!paragraph.place.empty()) out += "[" + paragraph.place + "]\n";
    }
  }
  return out + "\n" + notes.footer + "\n";
}

std::string Markdown(const Notes& notes) {
  const auto line = [](std::string_view text) {
    return EscapeMarkdown(OneLine(text));
  };
  const auto link = [&](std::string_view text, const std::string& id) {
    return "[" + line(text) + "](#" + id + ")";
  };
  std::string out = "# " + line(notes.title) + "\n";
  if (!notes.author.empty()) out += "\n" + line(notes.author) + "\n";
  const bool has_contents = notes.sections.size() > 1;
  if (has_contents) out += "\n";
  for (const Notes::Section& section : notes.sections) {
    if (has_contents) out += "- " + link(section.heading, section.id) + "\n";
  }
  for (const Notes::Section& section : notes.sections) {
    // Readers name headings each in their own way, and all know an anchor.
    const std::string anchor =
        has_contents ? "<a id=\"" + section.id + "\"></a>" : "";
    out += "\n## " + anchor + line(section.heading) + "\n";
    for (const Notes::Paragraph& paragraph : section.paragraphs) {
      out += "\n" + EscapeMarkdown(paragraph.text) + "\n";
      if (paragraph.place.empty()) continue;
      out += "\n*" +
             (has_contents && !paragraph.link.empty()
                  ? link(paragraph.place, paragraph.link)
                  : line(paragraph.place)) +
             "*\n";
    }
  }
  return out + "\n---\n\n" + line(notes.footer) + "\n";
}

constexpr std::string_view kStyle =
    "body{margin:0 auto;max-width:40em;padding:1em;font:1.05em/1.5 "
    "Georgia,serif;overflow-wrap:anywhere}"
    "h1,h2{line-height:1.2}nav li{margin:.3em 0}"
    ".place{margin-top:-.7em;font-size:.85em}.place,footer{color:#666}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}"
    "a{color:#9bf}.place,footer{color:#aaa}}";

std::string Html(const Notes& notes) {
  const std::string title = EscapeHtml(notes.title);
  std::string out =
      "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; style-src 'unsafe-inline'\">\n"
      "<title>" +
      title + "</title>\n<style>" + std::string(kStyle) +
      "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n";
  if (!notes.author.empty()) {
    out += "<p>" + EscapeHtml(notes.author) + "</p>\n";
  }
  if (notes.sections.size() > 1) {
    out += "<nav><ul>\n";
    for (const Notes::Section& section : notes.sections) {
      out += "<li><a href=\"#" + section.id + "\">" +
             EscapeHtml(section.heading) + "</a></li>\n";
    }
    out += "</ul></nav>\n";
  }
  for (const Notes::Section& section : notes.sections) {
    out += "<section id=\"" + section.id + "\">\n<h2>" +
           EscapeHtml(section.heading) + "</h2>\n";
    for (const Notes::Paragraph& paragraph : section.paragraphs) {
      out += HtmlParagraph(paragraph.text);
      if (paragraph.place.empty()) continue;
      const std::string place = EscapeHtml(paragraph.place);
      out += "<p class=\"place\">" +
             (paragraph.link.empty()
                  ? place
                  : "<a href=\"#" + paragraph.link + "\">" + place + "</a>") +
             "</p>\n";
    }
    out += "</section>\n";
  }
  return out + "<footer>" + EscapeHtml(notes.footer) +
         "</footer>\n</body>\n</html>\n";
}

}  // namespace

std::string Render(const Notes& notes, NotesFormat format) {
  switch (format) {
    case NotesFormat::kText:
      return Text(notes);
    case NotesFormat::kMarkdown:
      return Markdown(notes);
    case NotesFormat::kHtml:
      return Html(notes);
  }
  return "";
}

std::vector<std::string> Paragraphs(std::string_view text) {
  std::vector<std::string> paragraphs;
  std::string now;
  const auto end = [&] {
    const std::string_view trimmed = Trimmed(now);
    if (!trimmed.empty()) paragraphs.emplace_back(trimmed);
    now.clear();
  };
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    if (Trimmed(line).empty()) {
      end();
    } else {
      now.append(line).append("\n");
    }
  }
  end();
  return paragraphs;
}

void Notes::Section::Add(std::string_view text, const std::string& place,
                         const std::string& link) {
  for (std::string& paragraph : Paragraphs(text)) {
    paragraphs.push_back({std::move(paragraph), place, link});
  }
}

std::string EscapeMarkdown(std::string_view text) {
  constexpr std::string_view kAnywhere = "\\`*_[]<>&|~#";
  constexpr std::string_view kAtLineBegin = "+-=";
  std::string escaped;
  while (!text.empty()) {
    const std::string_view line = Trimmed(TakeLine(&text));
    const size_t digits = line.find_first_not_of("0123456789");
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const bool numbers_an_item =
          i > 0 && i == digits && (c == '.' || c == ')');
      // Some readers turn a bare address into a link.
      const bool makes_a_link =
          (c == ':' && line.substr(i + 1, 2) == "//") ||
          (c == '.' && i >= 3 && line.substr(i - 3, 3) == "www") || c == '@';
      if (kAnywhere.find(c) != std::string_view::npos || numbers_an_item ||
          makes_a_link ||
          (i == 0 && kAtLineBegin.find(c) != std::string_view::npos)) {
        escaped += '\\';
      }
      escaped += c;
    }
    // A backslash before a line end keeps it.
    if (!text.empty()) escaped += line.empty() ? "\n" : "\\\n";
  }
  return escaped;
}

}  // namespace tiercel::reader
