// The built-in font: each printable ASCII character as strokes on a grid 4 wide and 8 high; row 0 is the top
// of capitals, row 6 the baseline, row 8 the depth of descenders. A stroke is a run of points "xy"; strokes
// are parted by spaces.
#include <algorithm>
#include <array>

#include "train/drawing.h"

namespace megalith {
namespace {

constexpr double grid_height = 8.0;
constexpr double baseline_row = 6.0;
constexpr double advance_columns = 5.2;
constexpr char first_character = ' ';

constexpr std::array<std::string_view, 95> glyphs{
    "",                                       // space
    "2024 2526",                              // !
    "1012 3032",                              // "
    "1016 3036 0242 0444",                    // #
    "41301001021242444536 1605 2026",         // $
    "4006 0010110100 3545463635",             // %
    "4601102012040516 2634",                  // &
    "2022",                                   // '
    "30211215262736",                         // (
    "10213235261716",                         // )
    "2125 0343 1234 1432",                    // *
    "2125 0343",                              // +
    "262718",                                 // ,
    "0343",                                   // -
    "2526",                                   // .
    "4006",                                   // /
    "103041453616050110",                     // 0
    "112026 1636",                            // 1
    "01103041420646",                         // 2
    "0110304142331333 334445361605",          // 3
    "3036 300444",                            // 4
    "400003334445361605",                     // 5
    "4130100105163645443303",                 // 6
    "004026",                                 // 7
    "103041423313020110 133344453616050413",  // 8
    "0516364541301001021343",                 // 9
    "2223 2526",                              // :
    "2223 262718",                            // ;
    "410345",                                 // <
    "0242 0444",                              // =
    "014305",                                 // >
    "01103041422324 2526",                    // ?
    "4536160501103041443323 3222",            // @
    "062046 1434",                            // A
    "00063645443303 0030414233",              // B
    "4130100105163645",                       // C
    "00062644422000",                         // D
    "40000646 0333",                          // E
    "400006 0333",                            // F
    "41301001051636454323",                   // G
    "0006 4046 0343",                         // H
    "1030 2026 1636",                         // I
    "4045361605",                             // J
    "0006 4003 1346",                         // K
    "000646",                                 // L
    "0600234046",                             // M
    "06004640",                               // N
    "103041453616050110",                     // O
    "06003041423303",                         // P
    "103041453616050110 2446",                // Q
    "06003041423303 2346",                    // R
    "413010010213334445361605",               // S
    "0040 2026",                              // T
    "000516364540",                           // U
    "002640",                                 // V
    "0016233640",                             // W
    "0046 4006",                              // X
    "002340 2326",                            // Y
    "00400646",                               // Z
    "30101737",                               // [
    "0046",                                   // backslash
    "10303717",                               // ]
    "122032",                                 // ^
    "0747",                                   // _
    "1021",                                   // `
    "12324346 44140516 1646",                 // a
    "0006 0312324345361605",                  // b
    "4332120305163645",                       // c
    "4046 4332120305163645",                  // d
    "04444332120305163645",                   // e
    "40302126 1232",                          // f
    "4332120305163645 4247381807",            // g
    "0006 0312324346",                        // h
    "2226 2020",                              // i
    "32371817 3030",                          // j
    "0006 4204 1446",                         // k
    "202526",                                 // l
    "0602 03122326 23324346",                 // m
    "0602 0312324346",                        // n
    "123243453616050312",                     // o
    "0208 0312324345361605",                  // p
    "4248 4332120305163645",                  // q
    "0602 03123243",                          // r
    "43321203143445361605",                   // s
    "20253646 1232",                          // t
    "020516364542 4546",                      // u
    "022642",                                 // v
    "0216233642",                             // w
    "0246 4206",                              // x
    "0226 4218",                              // y
    "02420646",                               // z
    "3020221323252636",                       // {
    "2028",                                   // |
    "1020223323252616",                       // }
    "04133443",                               // ~
};

// A byte inside a UTF-8 character: the character was drawn (as a box) at its first byte.
bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

std::string_view glyph_of(char character) {
  const auto index = static_cast<std::size_t>(static_cast<unsigned char>(character)) -
                     static_cast<std::size_t>(first_character);
  return index < glyphs.size() ? glyphs[index] : std::string_view("0040460600");
}

}  // namespace

double text_width(std::string_view text) {
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); });
  return static_cast<double>(characters) * advance_columns / grid_height;
}

std::vector<std::vector<Point>> text_strokes(std::string_view text) {
  std::vector<std::vector<Point>> strokes;
  double left = 0;
  for (const char character : text) {
    if (is_continuation(character)) continue;
    std::vector<Point> stroke;
    int column = -1;
    for (const char digit : glyph_of(character)) {
      if (digit == ' ') {
        if (!stroke.empty()) strokes.push_back(std::move(stroke));
        stroke.clear();
        column = -1;
      } else if (column < 0) {
        column = digit - '0';
      } else {
        stroke.push_back({left + column / grid_height, (digit - '0' - baseline_row) / grid_height});
        column = -1;
      }
    }
    if (!stroke.empty()) strokes.push_back(std::move(stroke));
    left += advance_columns / grid_height;
  }
  return strokes;
}

}  // namespace megalith
