#include "data/bpe_json.h"

#include "core/error.h"

namespace megalith {

nlohmann::json parse_untrusted_json(std::string_view text, const std::string& name) {
  try {
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    fail(ErrorKind::input, name, "not valid JSON at byte {} of {}; the file is damaged or of another kind",
         error.byte, text.size());
  } catch (const nlohmann::json::exception&) {  // such as a number beyond double precision
    fail(ErrorKind::input, name, "holds a number that is too large to read; the file is damaged");
  }
}

std::string json_quoted(std::string_view text) {
  return nlohmann::json(std::string(text)).dump();
}

}  // namespace megalith
