// Did what was printed arrive? Output is buffered, so a full disk shows only when the buffer is written out.
#include "tools/Streams.h"

#include <wengert/Error.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <fcntl.h>

namespace wg::tools {

void holdStandardStreams() {
  // Opened the wrong way round: reading standard input and writing the others fails. The lowest
  // free number is the closed one.
  for (int stream = 0; stream < 3; ++stream)
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0)
      std::_Exit(1);
}

void flushOutput() {
  errno = 0;
  bool lost = !std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout);
  if (lost)
    throw Error(runtime::Failure{.kind = ErrorKind::io,
                                 .message = "standard output: cannot write" +
                                            (errno ? std::string(": ") + std::strerror(errno) : "")});
}

int finish(int status) {
  try {
    flushOutput();
    return status;
  } catch (const Error &error) {
    if (status == 0)
      std::cerr << error.what() << "\n";
    return status ? status : 1;
  }
}

} // namespace wg::tools
