// The commands that load torch: `gossamer train`, `demo` and `probe` hand over to this program.
#include <c10/util/Logging.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/output.h"
#include "gossamer/cli/page.h"
#include "gossamer/cli/train/commands.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/torch/process.h"
#include "gossamer/train/worker.h"

namespace {

/// What libtorch thinks of a lost connection, with its stack, would bury our message.
void quiet_libtorch() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
}

int report(const char* message, int code) {
  if (*message != '\0') std::cerr << message << std::endl;
  return code;
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "train") return gossamer::train_command(argc - 1, argv + 1);
  if (command == "demo") return gossamer::demo_command(argc - 1, argv + 1);
  if (command == "probe") return gossamer::probe_command(argc - 1, argv + 1);
  if (command == "translate") return gossamer::translate_command(argc - 1, argv + 1);
  return report("this program runs 'train', 'demo', 'probe' or 'translate'; see gossamer --help",
                gossamer::kExitUsage);
}

}  // namespace

int main(int argc, char** argv) {
  quiet_libtorch();
  gossamer::use_one_torch_thread();
  gossamer::keep_freed_memory();
  try {
    return gossamer::finish_output(run(argc, argv));
  } catch (const gossamer::HelpAsked& asked) {
    std::cout << gossamer::help_text(asked.page, gossamer::text_columns());
    return gossamer::finish_output(0);
  } catch (const gossamer::Interrupted& stopped) {
    return report(stopped.what(), gossamer::kExitSignal + stopped.signal());
  } catch (const gossamer::NonFiniteGradient& error) {
    return report(error.what(), gossamer::kExitDiverged);
  } catch (const gossamer::TransportError& error) {
    return report(error.what(), gossamer::kExitPeersLost);
  } catch (const std::invalid_argument& error) {
    return report(error.what(), gossamer::kExitUsage);
  } catch (const gossamer::OutsideError& error) {
    return report(error.what(), gossamer::kExitFailed);
  } catch (const gossamer::IoError& error) {  // of a file that the command line names
    return report(error.what(), gossamer::kExitUsage);
  } catch (const std::exception& error) {
    return report(error.what(), gossamer::kExitFailed);
  }
}
