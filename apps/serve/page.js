'use strict';
// Everything that comes from a document, from a model or from the server enters
// the page as text (textContent), never as markup.
const $ = (id) => document.getElementById(id);

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

const grouped = (number) => number.toLocaleString('en');
const news = (sentence) => { $('news').textContent = sentence; };

// ---- The server ----

let keyAsked = null;  // while the dialog is open

function askForKey() {
  keyAsked ??= new Promise((resolve, reject) => {
    const dialog = $('key-dialog');
    $('key').value = '';
    $('key-form').onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem('key', $('key').value);
      dialog.close();
      resolve();
    };
    dialog.oncancel = () => reject(Object.assign(
        new Error('This server asks for a key.'), {code: 'no_key'}));
    dialog.showModal();
  }).finally(() => { keyAsked = null; });
  return keyAsked;
}

// Returns a response that is well. An error has the server's words and code.
async function call(path, init = {}) {
  for (;;) {
    const key = sessionStorage.getItem('key');
    const headers = {...init.headers};
    if (key) headers.Authorization = `Bearer ${key}`;
    const response = await fetch(path, {...init, headers});
    if (response.ok) return response;
    if (response.status === 401) {
      await askForKey();
      continue;
    }
    const told = await response.json().catch(() => ({}));
    const error = told.error ?? {message: `The server says ${response.status}.`};
    throw Object.assign(new Error(error.message), {code: error.code});
  }
}

const callJson = async (path, body, signal) => (await call(path, {
  method: 'POST', headers: {'Content-Type': 'application/json'},
  body: JSON.stringify(body), signal})).json();

// Returns, when the model is loaded, the tokens that it takes at once, and how
// requests differ from the server's defaults: the penalty is that of `tiercel
// ask`, and an answer has an end.
async function findModel() {
  for (;;) {
    try {
      const [model] = (await (await call('v1/models')).json()).data;
      const context = model.meta.n_ctx;
      const props = await (await call('props')).json();
      const most = props.default_generation_settings.params.n_predict;
      $('model').textContent =
          `${model.id}, ${grouped(context)} tokens at once`;
      return {context, drawn: {dry_multiplier: 0.8,
                               max_tokens: most < 0 ? 1024 : most}};
    } catch (error) {
      if (error.code === 'no_key') {
        $('model').textContent = `${error.message} Load the page again.`;
        throw error;
      }
      $('model').textContent = error.code === 'loading'
          ? 'The model is being loaded …'
          : `The server does not answer yet: ${error.message}`;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}
const model = findModel();
model.catch(() => {});  // those who wait for it say it

// Yields the documents of a stream of events.
async function* eventsOf(response) {
  const reader =
      response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) throw new Error('The answer broke off.');
    const lines = (waiting + value).split('\n');
    waiting = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data: ')) continue;
      if (line === 'data: [DONE]') return;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

// ---- The document ----

let book = null;

// Turns bytes of a text in UTF-8 into places in the string. The offsets rise.
function placesOf(text, offsets) {
  const places = new Map();
  let byte = 0;
  let place = 0;
  for (const offset of offsets) {
    while (byte < offset && place < text.length) {
      const unit = text.charCodeAt(place);
      const pair = (unit & 0xfc00) === 0xd800;
      byte += unit < 0x80 ? 1 : unit < 0x800 ? 2 : pair ? 4 : 3;
      place += pair ? 2 : 1;
    }
    places.set(offset, place);
  }
  return places;
}

function bookOf(told, name) {
  const offsets = [...told.sections.flatMap((one) => [one.begin, one.end]),
                   ...told.pages.map((one) => one.begin)];
  const places = placesOf(told.text, offsets.sort((a, b) => a - b));
  return {
    ...told,
    title: told.title.trim() || name,
    sections: told.sections.map((one) => ({
      level: one.level, page: one.page,
      name: [one.label, one.title].map((part) => part.trim())
          .filter((part) => part).join(' ') || 'Section',
      begin: places.get(one.begin), end: places.get(one.end)})),
    pages: told.pages.map((one) => (
        {label: one.label, begin: places.get(one.begin)})),
  };
}

let reads = null;  // the AbortController of a document that is read

async function open(bytes, name) {
  reads?.abort();
  const mine = reads = new AbortController();
  showStart();
  $('state').className = 'fills';
  $('state').textContent = `Reading ${name} …`;
  $('cancel').hidden = false;
  try {
    const response = await call(`documents?name=${encodeURIComponent(name)}`,
                                {method: 'POST', body: bytes,
                                 signal: mine.signal});
    show(bookOf(await response.json(), name));
    $('state').textContent = '';
  } catch (error) {
    if (mine !== reads) return;
    const stopped = error.name === 'AbortError';
    $('state').classList.toggle('bad', !stopped);
    $('state').textContent = stopped ? 'Cancelled.' : error.message;
  } finally {
    if (mine === reads) $('cancel').hidden = true;
    $('file').value = '';
  }
}

function showStart() {
  document.body.className = 'starts';
  $('reading').hidden = true;
  $('start').hidden = false;
  $('another').textContent = 'Back to the text';
}

function showReading() {
  document.body.className = book.sections.length > 0 ? 'reads' : 'reads plain';
  $('start').hidden = true;
  $('reading').hidden = $('another').hidden = false;
  $('another').textContent = 'Another document';
  $('text').focus({preventScroll: true});
}

function show(opened) {
  running?.abort();
  book = opened;
  document.title = `${book.title} – Tiercel`;
  $('title').textContent = book.title;
  $('author').textContent = book.author;
  showReading();
  $('text').lang = book.language;
  $('text').scrollTop = 0;
  history.replaceState(null, '', location.pathname);
  choosePane('text');
  showOutline();
  showText();
  showScopes();
  $('answers').replaceChildren();
  news(`${book.title} is open.`);
}

const linkTo = ({begin, end}, name) =>
    make('a', {href: `#at-${begin}-${end}`, textContent: name});

function showOutline() {
  const lists = [make('ul')];  // of the levels above the next section
  const levels = [0];
  for (const section of book.sections) {
    while (levels.length > 1 && levels.at(-1) >= section.level) {
      levels.pop();
      lists.pop();
    }
    section.link = linkTo({begin: section.begin, end: section.begin},
                          section.name);
    const item = make('li', {}, section.link);
    section.link.onclick = () => followOutline(section);
    lists.at(-1).append(item);
    const below = make('ul');
    item.append(below);
    levels.push(section.level);
    lists.push(below);
  }
  for (const list of lists[0].querySelectorAll('ul:empty')) list.remove();
  $('outline').replaceChildren(lists[0]);
  $('outline').scrollTop = 0;
  for (const warning of book.warnings) {
    $('outline').append(make('p', {className: 'aside', textContent: warning}));
  }
}

// ---- The text ----

// Blocks end where a section does, or after some pages. One is filled when it
// comes near the window, so that a long text is as quick as a short one.
const BLOCK = 20_000;
let blocks = [];

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) fill(blocks[entry.target.dataset.block]);
  }
}, {root: $('text'), rootMargin: '1500px'});

function showText() {
  observer.disconnect();
  const levels = new Map(book.sections.map((one) => [one.begin, one.level]));
  const begins = [...new Set([0, ...levels.keys()])].sort((a, b) => a - b);
  blocks = [];
  begins.forEach((begin, i) => {
    const end = begins[i + 1] ?? book.text.length;
    let level = levels.get(begin) ?? 0;
    while (begin < end) {
      const gap = end - begin > 2 * BLOCK
          ? book.text.indexOf('\n\n', begin + BLOCK) : -1;
      const stop = gap < 0 || gap > end ? end : gap;
      blocks.push({begin, end: stop, level});
      begin = stop;
      level = 0;
    }
  });
  $('text').replaceChildren(...blocks.map((block, i) => {
    block.element = make('div');
    block.element.dataset.block = i;
    const lines = Math.ceil((block.end - block.begin) / 65);
    block.element.style.minHeight = `${lines * 1.65}em`;
    return block.element;
  }));
  for (const block of blocks) observer.observe(block.element);
}

// Lines that are as long as a page is wide were broken for width alone.
function isProse(paragraph) {
  const lines = paragraph.trimEnd().split('\n');
  return lines.slice(0, -1).every((line) =>
      line.length >= 50 && line.length <= 90 && !/ {3}|\t/.test(line));
}

function paragraph(name, className, from, text) {
  const element = make(name, {className, textContent: text, tabIndex: -1,
                              dir: 'auto'});
  element.from = from;
  return element;
}

function fill(block) {
  if (block.filled) return;
  block.filled = true;
  observer.unobserve(block.element);
  let from = block.begin;
  let first = block.level > 0;
  const parts = [];
  for (const piece of book.text.slice(block.begin, block.end)
                          .split(/(\n(?:[ \t]*\n)+)/)) {
    let text = piece;
    if (first && text.trim()) {  // a heading is at most a few lines
      first = false;
      const heading =
          text.length > 200 ? text.slice(0, text.indexOf('\n') + 1 || 200)
                            : text;
      parts.push(paragraph(block.level > 1 ? 'h3' : 'h2', '', from, heading));
      text = text.slice(heading.length);
      from += heading.length;
    }
    if (text.trim()) {
      parts.push(paragraph('p', isProse(text) ? 'prose' : '', from, text));
    }
    from += text.length;
  }
  block.element.replaceChildren(...parts);
  block.element.style.minHeight = '';
}

// The last of `list`, which is sorted, that begins at `place` or before.
function lastBefore(list, place, beginOf) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (beginOf(list[middle]) <= place) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function showPlace(begin, end) {
  const at = lastBefore(blocks, begin, (block) => block.begin);
  for (const near of [at - 1, at, at + 1]) if (blocks[near]) fill(blocks[near]);
  const parts = [...blocks[at].element.children];
  const part = parts[Math.max(
      0, lastBefore(parts, begin, (one) => one.from))];
  choosePane('text');
  for (const old of document.querySelectorAll('.place')) {
    old.classList.remove('place');
  }
  globalThis.CSS?.highlights?.delete('place');
  const words = part?.firstChild;
  if (!words) return;
  part.scrollIntoView({block: end > begin ? 'center' : 'start'});
  part.focus({preventScroll: true});
  if (end === begin) return;
  if (!globalThis.Highlight) {
    part.classList.add('place');
  } else {
    const range = new Range();
    range.setStart(words, Math.min(begin - part.from, words.length));
    range.setEnd(words, Math.min(end - part.from, words.length));
    CSS.highlights.set('place', new Highlight(range));
  }
}

function showHash() {
  const found = /^#at-(\d+)-(\d+)$/.exec(location.hash);
  if (book && found) showPlace(Number(found[1]), Number(found[2]));
}
addEventListener('hashchange', showHash);
addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="#at-"]');
  if (link && link.hash === location.hash) showHash();  // no hash changes
});

let marks = false;
$('text').addEventListener('scroll', () => {
  if (marks || !book) return;
  marks = true;
  requestAnimationFrame(() => {
    marks = false;
    const top = $('text').scrollTop + 20;
    const block = blocks[Math.max(0, lastBefore(
        blocks, top, (one) => one.element.offsetTop - $('text').offsetTop))];
    const index = lastBefore(book.sections, block.begin, (one) => one.begin);
    const link = book.sections[index]?.link;
    const old = $('outline').querySelector('[aria-current]');
    if (link === old) return;
    old?.removeAttribute('aria-current');
    link?.setAttribute('aria-current', 'true');
    link?.scrollIntoView({block: 'nearest'});
  });
});

// ---- Quotations ----

// A character as words are looked up: typesetting alone makes no difference.
function plainOf(character) {
  if ('"\'`´“”„‟«»‘’‚‛‹›ʼ′″'.includes(character)) return "'";
  if (/[_*\p{DI}]/u.test(character)) return '';
  if (/\s/.test(character)) return ' ';
  return /[\p{Pd}−]/u.test(character) ? '-' : character.normalize('NFKD');
}

// A text in plain characters, with single spaces, but none around a dash nor
// before a mark of punctuation. `from` has the place of each character.
function folded(text) {
  const from = [];
  const out = [];
  for (let i = 0; i < text.length;) {
    const character = String.fromCodePoint(text.codePointAt(i));
    for (const one of plainOf(character).split('')) {
      const last = out.at(-1);
      let place = i;
      if (one === ' ' && (last === ' ' || last === '-')) continue;
      if (last === ' ' && '-.,;:!?'.includes(one)) {
        out.pop();
        place = from.pop();
      }
      if (one === '-' && out.at(-1) === '-') continue;
      out.push(one);
      from.push(place);
    }
    i += character.length;
  }
  from.push(text.length);
  return {text: out.join(''), from};
}

const QUOTED = new RegExp(
    ['"([^"]+)"', '“([^”]+)”', '„([^“”]+)[“”]', '«([^»]+)»', '»([^«]+)«',
     '(?<!\\p{L})[‘\']((?:(?!\\n\\n)[^])+?)[’\'](?!\\p{L})', '「([^」]+)」', '『([^』]+)』']
        .join('|'), 'gu');
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/gu;

const WORD = /^[\p{L}\p{N}\p{M}]/u;
const MARK = /^\p{M}/u;

// Whether a place is within a word.
const inWord = (text) => WORD.test(text) && !text.match(UNSPACED);
const cutsWord = (text, at) => MARK.test(text.slice(at, at + 2)) ||
    (inWord(text.slice(at, at + 1)) && inWord(text.slice(at - 1, at)));
const cutsEnd = (text, at) => cutsWord(text, at) ||
    (text[at] === "'" && inWord(text.slice(at + 1, at + 2)) &&
     inWord(text.slice(at - 1, at)));

// The first place in a part of a text that has words, whole; -1: none has. The
// first `head` letters may have another case.
function placeOf(text, {begin, end}, words, head) {
  const rest = words.slice(head);
  const first = words.slice(0, head).toLowerCase();
  for (let at = begin + head;; ++at) {
    at = text.indexOf(rest, at);
    if (at < 0 || at + rest.length > end) return -1;
    const from = at - head;
    if (text.slice(from, at).toLowerCase() === first && !cutsWord(text, from) &&
        !cutsEnd(text, at + rest.length)) {
      return from;
    }
  }
}

// The place in the book of words that were quoted, within `scope` if they are
// there; null: they are not in the book. What stands around the words, and the
// case of the first, may be the answer's.
function findWords(quoted, scope) {
  const whole = folded(quoted).text.trim();
  const words = whole.replace(
      /^[^\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}]+$/gu, '');
  const spaced = words.replace(UNSPACED, ' ').split(' ').filter(
      (word) => /[\p{L}\p{N}]/u.test(word));
  if (spaced.length + (words.match(UNSPACED) ?? []).length < 4) return null;
  book.folded ??= folded(book.text);
  const {text, from} = book.folded;
  const indexOf = (place) => Math.max(
      0, lastBefore(from, place - 1, (one) => one) + 1);
  const firstWord = (form) => {
    const [first] = form.match(/^[\p{L}\p{N}\p{M}]*/u);
    return first.match(UNSPACED) ? 0 : first.length;
  };
  for (const part of [{begin: indexOf(scope.begin), end: indexOf(scope.end)},
                      {begin: 0, end: text.length}]) {
    for (const form of [whole, words]) {
      for (const head of [0, firstWord(form)]) {
        const at = placeOf(text, part, form, head);
        if (at >= 0) return {begin: from[at], end: from[at + form.length]};
      }
    }
  }
  return null;
}

// Makes links of the quotations in an answer that the book has. Returns their
// places.
function linkQuotations(element, scope) {
  const answer = element.textContent;
  const parts = [];
  const places = [];
  let done = 0;
  for (const match of answer.matchAll(QUOTED)) {
    const words = match.slice(1).find((group) => group !== undefined);
    const place = findWords(words, scope);
    if (place === null) continue;
    const at = match.index + match[0].indexOf(words);
    parts.push(answer.slice(done, at), linkTo(place, words));
    done = at + words.length;
    places.push(place);
  }
  element.replaceChildren(...parts, answer.slice(done));
  return places;
}

// ---- The part that is asked about ----

// The words are those of `tiercel ask` and `tiercel summarize`. The text stands
// before the question, so that the server reads it once for all questions.
const askAbout = (text, question) => `Read the following text.\n\n${text}\n\nAnswer from the text above: ${question}`;
const summaryOf = (text) => `Summarize the following text.\n\n${text}\n\nSummarize the text above in a few paragraphs: what it is about, what happens in it or what it argues, and how it ends.`;
const ROOM = 256;  // tokens of a request's words, and of some answer

let scopes = [];

function showScopes() {
  scopes = [{name: 'The whole text', begin: 0, end: book.text.length, level: 1},
            ...book.sections];
  $('scope').replaceChildren(...scopes.map((scope, i) => make('option', {
    value: i,
    textContent: '\u2003'.repeat(scope.level - 1) + scope.name +
        (scope.page ? `, page ${scope.page}` : '')})));
  measure();
}

const scopeChosen = () => scopes[$('scope').value];
const textOf = (scope) => book.text.slice(scope.begin, scope.end).trim();

// Counts the tokens of a part; what is certainly too long is not counted.
async function count(scope) {
  const {context} = await model;
  const text = textOf(scope);
  if (text.length > 32 * context) scope.tokens = Infinity;
  scope.tokens ??= (await callJson('tokenize', {content: text})).count;
  scope.fits = scope.tokens + ROOM <= context;
  return context;
}

async function measure() {
  const scope = scopeChosen();
  try {
    const context = await count(scope);
    if (scope !== scopeChosen()) return;
    const many = scope.tokens === Infinity
        ? 'Many tokens' : `${grouped(scope.tokens)} tokens`;
    $('fit').textContent = scope.fits ? `${many}.`
        : `${many}, too many: the model takes ${grouped(context)} at once. ` +
          'Choose a smaller part.';
  } catch (error) {
    if (scope === scopeChosen()) $('fit').textContent = error.message;
  }
  showWhetherReady();
}

function showWhetherReady() {
  const ready = running === null && scopeChosen()?.fits !== false;
  $('send').disabled = $('summarize').disabled = !ready;
}

// A chapter that is looked up becomes the part that is asked about, unless the
// whole text was meant and can be.
function followOutline(section) {
  if ($('scope').value === '0' && scopes[0].fits !== false) return;
  $('scope').value = scopes.indexOf(section);
  measure();
}

// ---- Questions ----

let running = null;  // the AbortController of the answer that is made

// Puts an empty answer on the page; returns its parts.
function addAnswer(title) {
  const parts = {
    state: make('p', {className: 'fills aside', textContent: 'Waiting …'}),
    stop: make('button', {type: 'button', textContent: 'Stop'}),
    progress: make('progress', {hidden: true, ariaLabel: 'The text is read'}),
    thought: make('p'),
    said: make('div', {className: 'said', dir: 'auto'}),
    from: make('p', {className: 'from', hidden: true}),
  };
  parts.thinks = make('details', {hidden: true},
                      make('summary', {textContent: 'Thought'}), parts.thought);
  $('answers').prepend(make('section', {className: 'answer'},
      make('h2', {textContent: title}), parts.thinks, parts.said, parts.from,
      parts.progress,
      make('div', {className: 'row'}, parts.state, parts.stop)));
  return parts;
}

// Streams an answer into its place. Returns a sentence on how it ended.
async function stream(content, parts, signal) {
  const {drawn} = await model;
  const response = await call('v1/chat/completions', {
    method: 'POST', headers: {'Content-Type': 'application/json'}, signal,
    body: JSON.stringify({
      ...drawn, messages: [{role: 'user', content}], stream: true,
      stream_options: {include_usage: true}, return_progress: true})});
  let ended = '';
  let usage = null;
  for await (const event of eventsOf(response)) {
    const read = event.prompt_progress;
    if (read) {
      parts.progress.hidden = false;
      parts.progress.max = read.total;
      parts.progress.value = read.processed;
      parts.state.textContent =
          `Reading, ${grouped(read.processed)} of ${grouped(read.total)} tokens`;
    }
    const [choice] = event.choices;
    const {reasoning_content: thought, content: words} = choice?.delta ?? {};
    if (thought || words) {
      parts.progress.hidden = true;
      parts.state.textContent = words ? 'Writing …' : 'Thinking …';
    }
    if (thought) {
      parts.thinks.hidden = false;
      parts.thought.append(thought);
    }
    if (words) parts.said.append(words);
    ended = choice?.finish_reason ?? ended;
    usage = event.usage ?? usage;
  }
  const found = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  return (ended === 'length' ? 'Cut at the length that the server allows. ' : '') +
      (usage ? `${grouped(usage.prompt_tokens)} tokens read` +
           (found > 0 ? `, ${grouped(found)} of them remembered` : '') +
           `, ${grouped(usage.completion_tokens)} written.` : '');
}

// Links to the part that an answer was made from, and to where it quotes.
function showSources(parts, scope, places) {
  const sections = [scope];
  for (const place of places) {
    const index = lastBefore(book.sections, place.begin, (one) => one.begin);
    const section = book.sections[index];
    if (section && !sections.includes(section)) sections.push(section);
  }
  parts.from.hidden = false;
  parts.from.replaceChildren('From: ', ...sections.flatMap((one, i) => {
    const page = one.page ? `, page ${one.page}` : '';
    const link = linkTo({begin: one.begin, end: one.begin}, one.name + page);
    return i > 0 ? ['; ', link] : [link];
  }));
}

async function answer(title, request) {
  const scope = scopeChosen();
  const about = book;
  const mine = running = new AbortController();
  showWhetherReady();
  const parts = addAnswer(title);
  parts.stop.onclick = () => mine.abort();
  news('The text is read.');
  try {
    parts.state.textContent = await stream(request(textOf(scope)), parts,
                                           mine.signal);
    news('The answer is complete.');
  } catch (error) {
    const stopped = error.name === 'AbortError';
    parts.state.classList.toggle('bad', !stopped);
    parts.state.textContent = stopped ? 'Stopped.' : error.message;
    news(parts.state.textContent);
  }
  if (running === mine) running = null;
  parts.progress.hidden = parts.stop.hidden = true;
  if (about !== book) return;
  if (parts.said.textContent) {
    showSources(parts, scope, linkQuotations(parts.said, scope));
  }
  showWhetherReady();
}

$('ask').onsubmit = (event) => {
  event.preventDefault();
  const question = $('question').value.trim();
  if (!question || $('send').disabled) return;
  $('question').value = '';
  answer(question, (text) => askAbout(text, question));
};
$('question').onkeydown = (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $('ask').requestSubmit();
};
$('summarize').onclick = () =>
    answer(`Summary: ${scopeChosen().name}`, summaryOf);
$('scope').onchange = measure;

// ---- The rest of the page ----

function choosePane(name) {
  $('reading').dataset.pane = name;
  for (const button of $('panes').children) {
    button.ariaPressed = String(button.dataset.pane === name);
  }
}
$('panes').onclick = (event) => {
  const name = event.target.dataset.pane;
  if (!name) return;
  choosePane(name);
  $(name).focus({preventScroll: true});
};

$('file').onchange = () => {
  const [file] = $('file').files;
  if (file) open(file, file.name);
};
$('paste').onsubmit = (event) => {
  event.preventDefault();
  open($('pasted').value, 'pasted.txt');
};
$('cancel').onclick = () => reads?.abort();
$('another').onclick = () => {
  if ($('start').hidden) showStart();
  else showReading();
};

const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
addEventListener('dragover', (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.add('drops');
});
addEventListener('dragleave', (event) => {
  if (!event.relatedTarget) document.body.classList.remove('drops');
});
addEventListener('drop', (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.remove('drops');
  const [file] = event.dataTransfer.files;
  if (file) open(file, file.name);
});
