#pragma once
/// The subcommands of `gossamer lab`, each in its own file.

namespace gossamer {

int run_lab_figure(int argc, char** argv);
int run_lab_run(int argc, char** argv);
int run_lab_transient(int argc, char** argv);

}  // namespace gossamer
