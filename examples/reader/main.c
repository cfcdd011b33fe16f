/* Reads books with a language model: reader [MODEL [BOOK]]. READER_MEMORY_MB is
 * the most memory for the model and all sessions. */
#include "reader.h"

static void OnActivate(GtkApplication* app, char** argv) {
  OpenWindow(app, argv[1], argv[1] != NULL ? argv[2] : NULL);
}

int main(int argc, char** argv) {
  GtkApplication* app = gtk_application_new(NULL, G_APPLICATION_NON_UNIQUE);
  g_set_application_name("Reader");
  g_signal_connect(app, "activate", G_CALLBACK(OnActivate), argv);
  const int code = g_application_run(G_APPLICATION(app), MIN(argc, 1), argv);
  FreeModel();
  g_object_unref(app);
  return code;
}
