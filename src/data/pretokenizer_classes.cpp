#include "data/pretokenizer_classes.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace megalith {

CharacterClasses::CharacterClasses(const std::vector<CharacterClass>& classes) {
  MEGALITH_ASSERT(classes.size() == code_points, "one class for every code point");
  std::map<Page, std::uint16_t> known;
  for (std::size_t block = 0; block < page_of_.size(); ++block) {
    Page page{};
    std::copy_n(classes.begin() + static_cast<std::ptrdiff_t>(block * page.size()), page.size(),
                page.begin());
    const auto [entry, fresh] = known.emplace(page, static_cast<std::uint16_t>(pages_.size()));
    if (fresh) pages_.push_back(page);
    page_of_[block] = entry->second;
  }
}

}  // namespace megalith
