"""Writes dry.txt: what llama.cpp's DRY sampler makes of texts of few words.

    python make_dry.py LLAMA_CPP > dry.txt

LLAMA_CPP is its source tree (../setup/peer.sh), built in `build` with shared
libraries, as bench/peer.py does. Needs g++. A line is a case, all of it numbers:

    multiplier base allowed_length
    breakers, and of each its length and tokens
    the length of the text, and its tokens
    penalties, and of each its token and what the logit loses

The sampler's own code computes the last line, from logits of 0; the rest is
drawn here.
"""

import pathlib
import random
import subprocess
import sys
import tempfile

CASES = 400
VOCAB = 8

PROGRAM = r"""
#include <cstdio>
#include <vector>

#include "llama.h"

llama_sampler* llama_sampler_init_dry_testing(
    float multiplier, float base, int32_t allowed_length, int32_t last_n,
    const std::vector<std::vector<llama_token>>& breakers);

static std::vector<llama_token> Read() {
  int size = 0;
  scanf("%d", &size);
  std::vector<llama_token> tokens(size);
  for (llama_token& token : tokens) scanf("%d", &token);
  return tokens;
}

int main() {
  float multiplier, base;
  int allowed, count;
  while (scanf("%f %f %d %d", &multiplier, &base, &allowed, &count) == 4) {
    std::vector<std::vector<llama_token>> breakers(count);
    for (auto& breaker : breakers) breaker = Read();
    const std::vector<llama_token> text = Read();
    llama_sampler* dry = llama_sampler_init_dry_testing(
        multiplier, base, allowed, 1024, breakers);
    for (llama_token token : text) llama_sampler_accept(dry, token);
    std::vector<llama_token_data> logits;
    for (llama_token id = 0; id < VOCAB; ++id) logits.push_back({id, 0, 0});
    llama_token_data_array all = {logits.data(), logits.size(), -1, false};
    llama_sampler_apply(dry, &all);
    std::vector<llama_token_data> lost;
    for (const auto& token : logits) {
      if (token.logit != 0) lost.push_back(token);
    }
    printf("%zu", lost.size());
    for (const auto& token : lost) printf(" %d %.9g", token.id, -token.logit);
    printf("\n");
    llama_sampler_free(dry);
  }
}
"""


def drawn(draw):
    """A case without its penalties."""
    words = draw.randrange(2, VOCAB)

    def tokens(length):
        return [length] + [draw.randrange(words) for _ in range(length)]

    breakers = [tokens(draw.randrange(1, 4)) for _ in range(draw.randrange(4))]
    numbers = [draw.choice((0.25, 0.5, 0.8, 1)), draw.choice((1, 1.1, 1.75, 9)),
               draw.randrange(1, 4), len(breakers)]
    for breaker in breakers:
        numbers += breaker
    # A few are so long that the power ends.
    text = ([300] + 300 * [1] if draw.randrange(40) == 0
            else tokens(draw.randrange(50)))
    return " ".join(map(str, numbers + text))


def main():
    tree = pathlib.Path(sys.argv[1])
    library = tree / "build/bin"
    draw = random.Random(0)
    cases = [drawn(draw) for _ in range(CASES)]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "dry.cc"
        source.write_text(PROGRAM)
        subprocess.run(
            ["g++", "-std=c++17", f"-DVOCAB={VOCAB}", f"-I{tree}/include",
             f"-I{tree}/ggml/include", source, "-o", source.with_suffix(""),
             f"-L{library}", "-lllama", f"-Wl,-rpath,{library}",
             f"-Wl,-rpath-link,{library}"], check=True)
        lost = subprocess.run([source.with_suffix("")], check=True, text=True,
                              input="\n".join(cases), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    for case, penalties in zip(cases, lost.stdout.splitlines(), strict=True):
        print(case, penalties)


if __name__ == "__main__":
    main()
