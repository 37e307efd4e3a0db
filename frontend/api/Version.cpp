#include <wengert/Version.h>

namespace wg {

const char *version() noexcept { return WENGERT_VERSION_STRING; }

} // namespace wg
