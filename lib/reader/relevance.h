#ifndef TIERCEL_LIB_READER_RELEVANCE_H_
#define TIERCEL_LIB_READER_RELEVANCE_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace tiercel::reader {

// Returns for each part of a text how much its words have to do with the
// question: BM25 (Robertson and Zaragoza, The Probabilistic Relevance
// Framework, 2009, 3.5) with k1 = 1.2 and b = 0.75 over the parts. A word that
// few parts have weighs more than one of many. Words are alike whatever their
// case and accents' composition, and by their first six letters, so that
// "whale" finds "whales"; in scripts without spaces each two neighbours are a
// word. A part that has none of the words has 0. The same parts and question
// give the same numbers.
std::vector<double> RelevanceOf(const std::vector<std::string_view>& parts,
                                std::string_view question);

// Returns the parts that are read with at most `most` tokens together,
// ascending: those of the greatest relevance, the first of equal ones, as long
// as they fit; one that does not fit is left out, and the next is tried.
// `tokens` has the length of each.
std::vector<size_t> MostRelevant(const std::vector<double>& relevance,
                                 const std::vector<size_t>& tokens,
                                 size_t most);

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_RELEVANCE_H_
