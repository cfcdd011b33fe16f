// Talks with a model: reads lines, and prints the answers as they come.
//
//   chat MODEL
#include <iostream>
#include <string>
#include <tiercel.hpp>
#include <vector>

namespace {

void Chat(const std::string& path) {
  tiercel::Model model(path);
  tiercel::Session session(model);
  auto sampling = tiercel::defaults<tiercel_sampling>();
  sampling.max_tokens = 256;
  sampling.split_thought = 1;
  std::vector<tiercel::Message> talk;
  std::string line;
  while (std::getline(std::cin, line)) {
    talk.push_back({"user", line});
    // The part of the talk that the session holds is not computed again.
    session.read(model.chat_tokens(talk));
    const std::string answer =
        session.generate(sampling, [](const tiercel::Token& token) {
          std::cout << token.text << std::flush;
          return true;
        });
    std::cout << "\n";
    talk.push_back({"assistant", answer});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: chat MODEL\n";
    return 2;
  }
  try {
    Chat(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "chat: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
