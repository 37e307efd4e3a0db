// Standard input, output and error of a program: what was printed has arrived, or the exit status says that it has not.
#pragma once

namespace wg::tools {

/// To be called first. A standard stream that is closed becomes one whose use is an error; else the next file that
/// is opened would be taken for it.
void holdStandardStreams();
/// Writes out what standard output holds back; throws wg::Error if any of what was printed is lost.
void flushOutput();
/// To be called last: the exit status, or 1 after a message on standard error if any of what was printed is lost.
int finish(int status);

} // namespace wg::tools
