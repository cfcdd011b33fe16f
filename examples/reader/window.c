#include <sys/resource.h>

#include "reader.h"

struct Window {
  GtkApplication* app;
  GtkWindow* window; /* NULL: closed, while the last task ends */
  GtkWidget *open, *more, *info, *view, *progress, *stop, *question, *ask,
      *chapters;
  GtkTextBuffer* text;
  GtkFileChooserNative* dialog;
  GThreadPool* worker;     /* one thread, on which tasks wait for each other */
  GCancellable* stop_task; /* the last */
  Task task;
  int tasks; /* that have not ended */
  gboolean has_plan;
  char* book; /* path; NULL: none is open */
};

/* A task, on its way to the worker and back; or what it tells meanwhile. */
typedef struct Event {
  Window* window;
  Task task; /* NULL: `share` is told, and the result of the job */
  Job job;
  tiercel_status status;
  double share;
} Event;

static gboolean has_model;

/* Gives a widget a name for those who do not see it. */
static void Name(GtkWidget* widget, const char* name) {
  gtk_accessible_update_property(GTK_ACCESSIBLE(widget),
                                 GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

static void ShowProgress(Window* window, const char* words, double share) {
  g_object_set(window->progress, "text", words, "fraction", share, NULL);
  Name(window->progress, words);
}

/* Lets the user do what can be done now. */
static void Refresh(Window* window) {
  const gboolean works = window->tasks > 0;
  g_object_set(window->open, "sensitive", !works, "label",
               has_model ? "Open Book" : "Open Model", NULL);
  gtk_widget_set_sensitive(window->more, has_model);
  gtk_widget_set_sensitive(window->chapters, !works || window->task == Choose);
  gtk_widget_set_sensitive(window->ask, window->has_plan && !works);
  gtk_widget_set_sensitive(window->stop, works);
}

static gboolean OnEvent(gpointer event);

static Event* NewEvent(Window* window, Task task, const char* text) {
  Event* event = g_new0(Event, 1);
  event->window = window;
  event->task = task;
  event->job.text = g_strdup(text);
  event->job.result = g_string_new(NULL);
  event->job.error.struct_size = sizeof(tiercel_error);
  return event;
}

void Tell(Window* window, double share, const char* text, size_t bytes) {
  Event* event = NewEvent(window, NULL, NULL);
  event->share = share;
  g_string_append_len(event->job.result, text, (gssize)bytes);
  g_idle_add(OnEvent, event);
}

static void Work(gpointer data, gpointer reading) {
  Event* event = data;
  /* The library's threads inherit it, and leave the main loop its time. */
  setpriority(PRIO_PROCESS, 0, 5);
  event->status = g_cancellable_is_cancelled(event->job.stop)
                      ? TIERCEL_CANCELLED
                      : event->task(reading, &event->job);
  g_idle_add(OnEvent, event);
}

static void Start(Window* window, Task task, const char* text) {
  Event* event = NewEvent(window, task, text);
  g_clear_object(&window->stop_task);
  window->stop_task = g_cancellable_new();
  event->job.stop = g_object_ref(window->stop_task);
  window->task = task;
  ++window->tasks;
  g_thread_pool_push(window->worker, event, NULL);
  if (window->window != NULL) Refresh(window);
}

static void Append(Window* window, const char* text, const char* tag) {
  GtkTextIter end;
  gtk_text_buffer_get_end_iter(window->text, &end);
  gtk_text_buffer_insert_with_tags_by_name(window->text, &end, text, -1, tag,
                                           NULL);
  gtk_text_view_scroll_mark_onscreen(GTK_TEXT_VIEW(window->view),
                                     gtk_text_buffer_get_insert(window->text));
}

static void OnRow(Window* window) {
  GtkListBoxRow* row =
      gtk_list_box_get_selected_row(GTK_LIST_BOX(window->chapters));
  if (row == NULL || !has_model) return;
  g_cancellable_cancel(window->stop_task); /* a plan for another chapter */
  window->has_plan = FALSE;
  gtk_text_buffer_set_text(window->text, "", 0);
  g_autofree char* at = g_strdup_printf("%d", gtk_list_box_row_get_index(row));
  Start(window, Choose, at);
}

static void ShowBook(Window* window, const Job* job) {
  GtkListBox* list = GTK_LIST_BOX(window->chapters);
  GtkListBoxRow* row;
  g_auto(GStrv) chapters = g_strsplit(job->result->str, "\n", -1);
  g_free(window->book);
  window->book = g_strdup(job->text);
  while ((row = gtk_list_box_get_row_at_index(list, 0)) != NULL) {
    gtk_list_box_remove(list, GTK_WIDGET(row));
  }
  for (char** name = chapters; *name != NULL; ++name) {
    GtkWidget* label = gtk_label_new(*name);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_label_set_ellipsize(GTK_LABEL(label), PANGO_ELLIPSIZE_END);
    gtk_list_box_append(list, label);
  }
  row = gtk_list_box_get_row_at_index(list, chapters[1] ? 1 : 0);
  gtk_list_box_select_row(list, row);
}

static void ShowEnd(Window* window, const Event* event) {
  const gboolean is_done = event->status == TIERCEL_OK;
  const gboolean is_stopped = event->status == TIERCEL_CANCELLED;
  ShowProgress(window, is_stopped ? "Stopped" : "Ready", 0);
  if (event->task == Ask) Append(window, "\n\n", NULL);
  if (is_done && event->task == OpenModel) {
    has_model = TRUE;
    OnRow(window);
  } else if (is_done && event->task == OpenBook) {
    ShowBook(window, &event->job);
  } else if (is_done && event->task == Choose) {
    window->has_plan = window->tasks == 0; /* else another is coming */
    gtk_widget_remove_css_class(window->info, "error");
    gtk_label_set_text(GTK_LABEL(window->info), event->job.result->str);
  } else if (!is_done && !is_stopped) {
    gtk_widget_add_css_class(window->info, "error");
    gtk_label_set_text(GTK_LABEL(window->info), event->job.error.message);
  }
  Refresh(window);
}

static gboolean OnEvent(gpointer data) {
  Event* event = data;
  Window* window = event->window;
  const char* text = event->job.result->str;
  if (event->task != NULL) --window->tasks;
  if (window->window != NULL && event->task != NULL) ShowEnd(window, event);
  if (window->window != NULL && event->task == NULL) {
    if (event->share < 0) Append(window, text, NULL);
    if (event->share >= 0) ShowProgress(window, text, event->share);
  }
  if (event->task == Close) {
    g_application_release(G_APPLICATION(window->app));
    g_object_unref(window->stop_task);
    g_free(window->book);
    g_free(window);
  }
  g_clear_object(&event->job.stop);
  g_string_free(event->job.result, TRUE);
  g_free(event->job.text);
  g_free(event);
  return G_SOURCE_REMOVE;
}

static void OnAsk(Window* window) {
  const char* question = gtk_editable_get_text(GTK_EDITABLE(window->question));
  if (*question == '\0' || !gtk_widget_get_sensitive(window->ask)) return;
  Append(window, question, "bold");
  Append(window, "\n", NULL);
  Start(window, Ask, question);
  gtk_editable_select_region(GTK_EDITABLE(window->question), 0, -1);
}

static void OnStop(Window* window) { g_cancellable_cancel(window->stop_task); }

static void OnFile(Window* window, int response) {
  if (response != GTK_RESPONSE_ACCEPT) return;
  g_autoptr(GFile) file =
      gtk_file_chooser_get_file(GTK_FILE_CHOOSER(window->dialog));
  g_autofree char* path = g_file_get_path(file);
  Start(window, has_model ? OpenBook : OpenModel, path);
}

static void OnOpen(Window* window) {
  g_clear_object(&window->dialog);
  window->dialog = gtk_file_chooser_native_new(
      gtk_button_get_label(GTK_BUTTON(window->open)), window->window,
      GTK_FILE_CHOOSER_ACTION_OPEN, NULL, NULL);
  g_signal_connect_swapped(window->dialog, "response", G_CALLBACK(OnFile),
                           window);
  gtk_native_dialog_show(GTK_NATIVE_DIALOG(window->dialog));
}

static void OnMore(Window* window) {
  OpenWindow(window->app, NULL, window->book);
}

/* The window goes at once, its reading as soon as the task that runs ends. */
static gboolean OnClose(Window* window) {
  window->window = NULL;
  g_clear_object(&window->dialog);
  g_cancellable_cancel(window->stop_task);
  Start(window, Close, NULL);
  g_thread_pool_free(window->worker, FALSE, FALSE);
  return GDK_EVENT_PROPAGATE;
}

static GtkWidget* Button(Window* window, GtkGrid* grid, const char* label,
                         GCallback pressed, int column, int row) {
  GtkWidget* button = gtk_button_new_with_label(label);
  g_signal_connect_swapped(button, "clicked", pressed, window);
  gtk_grid_attach(grid, button, column, row, 1, 1);
  return button;
}

static GtkWidget* Scrolled(GtkWidget* child) {
  return g_object_new(GTK_TYPE_SCROLLED_WINDOW, "child", child, "vexpand", TRUE,
                      "width-request", 230, NULL);
}

void OpenWindow(GtkApplication* app, const char* model, const char* book) {
  Window* window = g_new0(Window, 1);
  g_application_hold(G_APPLICATION(app));
  window->app = app;
  window->worker = g_thread_pool_new(Work, NewReading(window), 1, TRUE, NULL);
  window->window = GTK_WINDOW(gtk_application_window_new(app));
  GtkGrid* grid = GTK_GRID(gtk_grid_new());
  window->open = Button(window, grid, "Open Model", G_CALLBACK(OnOpen), 0, 2);
  window->more = Button(window, grid, "New Window", G_CALLBACK(OnMore), 0, 3);
  window->stop = Button(window, grid, "Stop", G_CALLBACK(OnStop), 2, 2);
  window->ask = Button(window, grid, "Ask", G_CALLBACK(OnAsk), 2, 3);
  window->chapters = gtk_list_box_new();
  window->info = gtk_label_new(NULL);
  window->progress = gtk_progress_bar_new();
  window->question = gtk_entry_new();
  window->view = gtk_text_view_new();
  Name(window->chapters, "Chapters");
  Name(window->question, "Question");
  Name(window->view, "Answers");
  g_object_set(window->info, "xalign", 0.0, "wrap", TRUE, NULL);
  g_object_set(window->progress, "show-text", TRUE, NULL);
  g_object_set(window->question, "hexpand", TRUE, NULL);
  g_object_set(window->view, "editable", FALSE, "wrap-mode", GTK_WRAP_WORD_CHAR,
               "left-margin", 8, "right-margin", 8, NULL);
  window->text = gtk_text_view_get_buffer(GTK_TEXT_VIEW(window->view));
  gtk_text_buffer_create_tag(window->text, "bold", "weight", 700, NULL);
  g_object_set(grid, "row-spacing", 8, "column-spacing", 8, "margin-start", 8,
               "margin-end", 8, "margin-top", 8, "margin-bottom", 8, NULL);
  gtk_grid_attach(grid, Scrolled(window->chapters), 0, 0, 1, 2);
  gtk_grid_attach(grid, window->info, 1, 0, 2, 1);
  gtk_grid_attach(grid, Scrolled(window->view), 1, 1, 2, 1);
  gtk_grid_attach(grid, window->progress, 1, 2, 1, 1);
  gtk_grid_attach(grid, window->question, 1, 3, 1, 1);
  g_object_set(window->window, "titlebar", gtk_header_bar_new(), "child", grid,
               "default-width", 900, "default-height", 600, NULL);
  g_signal_connect_swapped(window->chapters, "row-selected", G_CALLBACK(OnRow),
                           window);
  g_signal_connect_swapped(window->question, "activate", G_CALLBACK(OnAsk),
                           window);
  g_signal_connect_swapped(window->window, "close-request", G_CALLBACK(OnClose),
                           window);
  Refresh(window);
  gtk_window_present(window->window);
  if (model != NULL) Start(window, OpenModel, model);
  if (book != NULL) Start(window, OpenBook, book);
}
