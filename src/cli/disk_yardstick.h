// How fast a disk writes and reads one large file, by plain loops: what checkpoints are measured against.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace megalith {

/// A way to move a file: through the system's page cache or past it (O_DIRECT), blocks of 1 MiB, `under_way`
/// of them at once.
struct DiskWay {
  bool is_direct = false;
  int under_way = 1;
};

/// "through the page cache", "past the page cache, 2 blocks at once"
std::string name_of(const DiskWay& way);

/// Seconds to write a new file of `bytes` bytes, a multiple of 1 MiB, until fsync has returned. A negative
/// number where the file system cannot do it this way. Raises Error (environment) on any other failure.
double seconds_to_write(const std::filesystem::path& path, std::uint64_t bytes, const DiskWay& way);

/// Seconds to read such a file, none of which is in the page cache.
double seconds_to_read(const std::filesystem::path& path, const DiskWay& way);

/// Lets the system's page cache forget a file.
void drop_from_cache(const std::filesystem::path& path);

}  // namespace megalith
