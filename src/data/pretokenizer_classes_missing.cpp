// Linked where PCRE2 was not found at build time.
#include "core/error.h"
#include "data/pretokenizer_classes.h"

namespace megalith {

CharacterClasses CharacterClasses::load() {
  fail(ErrorKind::environment, "tokenizer",
       "this build has no Unicode properties, because PCRE2 was not found when it was built; install PCRE2 "
       "10.40 or "
       "newer (Debian: apt-get install libpcre2-dev) and build again");
}

}  // namespace megalith
