#!/usr/bin/env bash
# Tests the tests: applies one-line faults to a copy of the tree, one at a time,
# and expects the suite to turn red for each. A fault that survives is a hole in
# the suite, and so is one that only a time limit ends: a test must say what is
# wrong.
#
#   mutants.sh [NAME|FOLDER/...]   all of them, or those named and those of the
#                                  files in these folders
#
# A fault costs the objects of the files that see it, the link of one program
# and one test. Libraries are compiled file by file, so that a fault in one file
# compiles no other; tests do not change and are compiled together. The faults
# of one folder's tests are tried one after the other, in the order of their
# files, in one copy of the tree; as many folders at once as there are
# processors. The copies stay in build/mutants, so a later run builds only what
# has changed since.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck disable=SC2016  # patterns are no shell text
# name | file | what is there | what the fault puts there | test that must fail
readonly MUTANTS='
rope_sign|kernels/kv/kv_write.cc|a \* cos\[i\] - b \* sin\[i\]|a * cos[i] + b * sin[i]|kernels/kv/kv_write_test.cc
rope_head|kernels/kv/kv_write.cc|to.q_stride + int64_t{head} \* kv.head_dim|to.q_stride + int64_t{head} * to.half|kernels/kv/kv_write_test.cc
rope_in_place|kernels/kv/kv_write.cc|Rotate(r, head_.data());|Rotate(r, const_cast<float*>(k));|kernels/kv/kv_write_test.cc
attention_mask|kernels/attention/attention.cc|item.end = position + 1 - start|item.end = position - start|kernels/attention/attention_test.cc
attention_begin|kernels/attention/attention.cc|std::max(p_.begin - start, int64_t{0})|std::max(p_.begin - start + 1, int64_t{0})|kernels/attention/attention_test.cc
view_window|kernels/attention/attention.cc|position + 1 - page \* kPageTokens|position - page * kPageTokens|kernels/attention/attention_view_test.cc
view_head|kernels/attention/attention.cc|p_.view\[item->kv_head\]|p_.view[0]|kernels/attention/attention_view_test.cc
chunk_head|kernels/select/mean_scores.cc|p.q.raw() + kv_head \* group \* p.head_dim|p.q.raw() + kv_head * p.head_dim|kernels/select/mean_scores_test.cc
chunk_tile|kernels/select/mean_scores.cc|std::min(tile, p.num_chunks - chunk)|std::min(tile, p.num_chunks)|kernels/select/chunk_scores_test.cc
mean_norms|kernels/kv/chunk_means_ref.cc|NormOf(out, kv.head_dim)|NormOf(out, kv.head_dim / 2)|kernels/kv/chunk_means_test.cc
evidence_stride|kernels/select/importance.cc|p.scores.raw() + i \* p.scores_stride|p.scores.raw() + i * p.candidates|kernels/select/importance_test.cc
coverage_newest|kernels/select/coverage_cpu.cc|SumOf(scores + newest, positions - newest)|SumOf(scores, newest)|kernels/select/coverage_test.cc
coverage_group|kernels/select/coverage.cc|p.kept\[h / group\]|p.kept[h / group * 0]|kernels/select/coverage_test.cc
attention_scale|models/decoder/decoder.cc|.scale = kv.layout.AttentionScale()|.scale = 2 * kv.layout.AttentionScale()|tests/golden_logits_test.cc
norm_eps|kernels/layer/rms_norm_cpu.cc|sqrtf(mean + eps)|sqrtf(mean) + eps|kernels/layer/rms_norm_test.cc
norm_barrier|kernels/device/block_sums.h|Barrier();  // all are done with the tile before||kernels/layer/rms_norm_test.cc
norm_twice|kernels/layer/rms_norm.cu|out\[i\] = x\[i\] \* factor|out[i] = out[i] * factor|kernels/layer/rms_norm_test.cc
expert_ties|kernels/layer/expert_choice.cc|(~uint32_t{0} - static_cast<uint32_t>(expert))|static_cast<uint32_t>(expert)|kernels/layer/expert_choice_test.cc
expert_normed|kernels/layer/expert_choice.cc|shares\[i\] /= total;|shares[i] /= sum;|kernels/layer/expert_choice_test.cc
expert_kernel_ties|kernels/layer/expert_choice.cu|other < e);|other > e);|kernels/layer/expert_choice_test.cc
expert_offset|kernels/layer/expert_matmul.cc|part.expert \* panels_ \* weights.panel_bytes()|part.expert * weights.panel_bytes()|kernels/layer/expert_matmul_test.cc
expert_stride|kernels/layer/expert_matmul.cc|group.expert \* ExpertStride(p.n), p.n|group.expert * p.n / 16 * 16, p.n|kernels/layer/expert_matmul_test.cc
expert_tile|kernels/layer/expert_matmul.cc|RowOf(first + r) \* blocks_|RowOf(first) * blocks_|kernels/layer/expert_matmul_test.cc
expert_part|kernels/layer/expert_matmul.cc|first += part_items_) {|first = group.end) {|kernels/layer/expert_matmul_test.cc
expert_shares|kernels/layer/expert_sum.cc|p.shares.raw() + row \* p.used|p.shares.raw() + 0 * row|kernels/layer/expert_sum_test.cc
gather_stride|kernels/layer/gather_rows.cu|p.rows\[item\] \* p.x_stride|p.rows[item] * p.dim|kernels/layer/gather_rows_test.cc
expert_half|models/decoder/tensor_finder.cc|(expert \* of.halves + of.half) \* rows|expert * of.halves * rows|tests/golden_logits_test.cc
expert_place|models/decoder/row_reader.cc|places.expert \* ExpertStride(part.size()) + row|row|tests/golden_logits_test.cc
expert_as_it_is|models/decoder/experts.cc|.normed = config.normed,|.normed = true,|tests/golden_logits_test.cc
expert_dense|models/decoder/config_hf.cc|experts.layers\[layer.get<size_t>()\] = false;|experts.layers[0] = false;|models/decoder/families_test.cc
expert_step|models/decoder/config_hf.cc|(layer + 1) % step == 0|layer % step == 0|models/decoder/families_test.cc
expert_items|models/decoder/experts.cc|items_\[i\] = static_cast<int32_t>(item);|items_[i] = static_cast<int32_t>(i);|models/decoder/experts_test.cc
expert_read|models/decoder/weights.cc|\*bytes / experts.count \* experts.used|*bytes|models/decoder/weights_test.cc
expert_more|models/decoder/weight_sizes.cc|if (expert_bytes == 0) return 1;|if (rows > 0) return 1;|runtime/plan/prediction_test.cc
expert_rows|runtime/pass/pass.cc|kLeastForWeights \* experts.count / experts.used|kLeastForWeights|runtime/pass/pass_test.cc
expert_gathered|models/decoder/experts.cc|gather_ != nullptr ? a_.all_ffn.data() : a_.gate.data()|a_.gate.data()|runtime/session/experts_test.cc
expert_columns|models/decoder/experts.cc|hidden + columns.begin|hidden + 0 * columns.begin|runtime/session/experts_test.cc
expert_wait|models/decoder/experts.cc|  RETURN_IF_ERROR(stream.Synchronize());||tests/hosted_test.cc
packet_bound|kernels/layer/swiglu.cu|i < in_packets|i <= in_packets|kernels/layer/swiglu_test.cc
kernel_head|kernels/kv/kv_write.cu|head \* p.head_dim|head * p.rotation.half|kernels/kv/kv_write_test.cc
kernel_turned|kernels/kv/kv_write.cu|row \* half + i|row + i|kernels/kv/kv_write_test.cc
kernel_piece|kernels/kv/kv_element.h|i >= head_dim|i > head_dim|kernels/kv/kv_write_test.cc
kernel_fault|kernels/kv/kv_element.h|== kAllLanes;|!= 0;|kernels/kv/kv_write_test.cc
copy_wait|kernels/layer/matmul.cu|CopyWait<kStages - 2>|CopyWait<kStages - 1>|kernels/layer/matmul_test.cc
blas_rows|kernels/layer/matmul_gpu.cc|p_.rows >= kLeastBlasRows|p_.rows > kLeastBlasRows|kernels/layer/matmul_blas_test.cc
blas_padding|kernels/layer/prompt_rows.cu|row < rows ? x|row <= rows ? x|kernels/layer/matmul_blas_test.cc
blas_range|kernels/layer/prompt_rows.cu|over <= 0|over <= 200|kernels/layer/matmul_blas_test.cc
blas_edge|kernels/layer/prompt_rows.cu|kF16 ? 14|kF16 ? 15|kernels/layer/matmul_blas_test.cc
blas_back|kernels/layer/prompt_rows.cu|products\[i\] \* back\[row\]|products[i]|kernels/layer/matmul_blas_test.cc
blas_block|kernels/layer/matmul_gpu.cc|target.out += row|target.out += 0 * row|kernels/layer/matmul_blas_test.cc
blas_version|kernels/device/cuda/blas_lt.cc|version / 10000 != kVersion|version / 10000 < kVersion - 1|kernels/device/cuda/blas_lt_test.cc
blas_alignment|kernels/device/cuda/blas_lt.cc|prefer(alignment, kAlignment);|prefer(alignment, 2 * kAlignment);|kernels/device/cuda/blas_lt_test.cc
blas_choice|kernels/device/cuda/blas_lt.cc|if (found < 1)|if (found < 0)|kernels/device/cuda/blas_lt_test.cc
batch_angle|runtime/pass/step.cc|{own.position + part.rows.begin, own.position + part.rows.end}|{part.rows.begin, part.rows.end}|runtime/session/batch_test.cc
batch_pages|runtime/pass/step.cc|attends ? \&kv_\[i\].pages()|attends ? \&kv_[0].pages()|runtime/session/batch_test.cc
batch_queries|runtime/pass/step.cc|decoder_.queries() + first \* decoder_.query_width()|decoder_.queries() + 0 * first|runtime/session/batch_test.cc
batch_ids|runtime/pass/step.cc|ids.insert(ids.end(), own + part.rows.begin, own + part.rows.end);|ids.insert(ids.end(), own, own + (part.rows.end - part.rows.begin));|runtime/session/batch_prompts_test.cc
batch_keys|models/decoder/decoder.cc|a_.k.data() + at \* widths_.kv|a_.k.data()|runtime/session/batch_test.cc
batch_heads|models/decoder/decoder.cc|a_.head.data() + row \* widths_.heads|a_.head.data()|runtime/session/batch_test.cc
batch_folds|models/decoder/decoder.cc|pages.sum = pages.sum + folds;||runtime/session/batch_test.cc
batch_shared|models/decoder/decoder.cc|a.pages\[shared\] == b.pages\[shared\]|b.pages[shared] != nullptr|runtime/session/batch_test.cc
batch_behind|models/decoder/decoder.cc|all.position = (kv.first_page + shared)|all.position = (kv.first_page + 0 * shared)|runtime/session/batch_test.cc
batch_logits|runtime/session/batch.cc|(kept + first - skipped)|(0 * kept + first - skipped)|runtime/session/batch_test.cc
batch_fills|runtime/session/batch.cc|rows + count <= most|rows + count <= most / 8|runtime/session/batch_test.cc
batch_shares|runtime/session/runner.cc|others_ != nullptr \&\& own.count <= kMaxStepRows|false \&\& own.count <= kMaxStepRows|runtime/session/batch_test.cc
branch_residual|drafts/verdict.h|chance.Draw(ResidualOf(rest, of_others\[0\]), i)|chance.Draw(rest, i)|drafts/verdict_test.cc
branch_rest|drafts/verdict.h|AcceptanceOf(rest, of_others\[0\]|AcceptanceOf(targets[i], of_others[0]|drafts/verdict_test.cc
branch_without|drafts/verdict.h|distribution.ids\[i\] == id|(distribution.ids[i] == id \&\& false)|drafts/verdict_test.cc
branch_behind|drafts/verdict.h|const L\& target = behind\[k - 1\];|const L\& target = behind[0];|drafts/verdict_test.cc
branch_place|drafts/verdict.h|branches\[i\].at == at|branches[i].at <= at|drafts/verdict_test.cc
branch_walk|drafts/verdict.h|if (drawn != others\[0\]) return|if (false) return|drafts/verdict_test.cc
branch_noise|drafts/verify.cc|Accept(probability, i, accept_branch_)|Accept(probability, i, accept_)|drafts/verify_test.cc
branch_context|drafts/verifying_drafter.cc|kBranchTokens, std::ssize(block->tokens) - static_cast<int64_t>(at))|kBranchTokens, 8)|runtime/policies/triforce/triforce_test.cc
branch_rows|runtime/drafting/session_kv.cc|RowLogits(first + skipped, count)|RowLogits(first, count)|runtime/policies/triforce/triforce_test.cc
branch_tokens|runtime/drafting/model_target.cc|const size_t shared = before_ + branch.at;|const size_t shared = before_;|runtime/policies/triforce/triforce_test.cc
branch_kept|drafts/verify.cc|.subspan(verdict.accepted)|.last(1)|runtime/policies/triforce/triforce_test.cc
branch_slots|runtime/plan/session_plan.cc|branches > 0 ? 2 : 1|branches > 0 ? 1 : 1|runtime/policies/triforce/triforce_test.cc
branch_ids|runtime/session/forward.cc|{\*copy, other.data(), |{*copy, own.ids + 0 * other.data()[0], |runtime/policies/triforce/triforce_test.cc
batch_turns|runtime/session/batch.cc|if (members_.size() > 1 .. arrivals_may_come_) running_->strand->Yield();||runtime/session/batch_test.cc
batch_sole|runtime/session/batch.cc|members_.size() > 1 .. arrivals_may_come_|members_.size() > 1|runtime/session/batch_prompts_test.cc
prompt_first|runtime/session/runner.cc|return CanSharePrompts() ? kFirst : kAlone;|return 0 * kFirst;|runtime/session/batch_prompts_test.cc
prompt_slices|runtime/session/runner.cc|return CanSharePrompts() ? kMaxStepRows : kAlone;|return 0 * kAlone;|runtime/session/batch_prompts_test.cc
prompt_beside|runtime/session/batch.cc|decodes ? kMaxStepRows : most;|decodes ? most : most;|runtime/session/batch_prompts_test.cc
prompt_last_row|runtime/session/batch.cc|(kept + first - skipped)|(kept + first)|runtime/session/batch_prompts_test.cc
prompt_shared|runtime/session/runner.cc|return !stream().fast_prompts|return stream().fast_prompts|runtime/session/batch_prompts_test.cc
prompt_told|runtime/session/forward.cc|progress(done + own|progress(0 * done + own|runtime/session/batch_prompts_test.cc
batch_fold_rows|models/decoder/decoder.cc|folds_.data() + rows \* all.heads|folds_.data() + all.heads|runtime/session/batch_test.cc
batch_drafts|runtime/session/runner.cc|if (others_ != nullptr \&\& few) {|if (few \&\& false) {|runtime/session/batch_tiers_test.cc
batch_drafts_first|runtime/session/batch.cc|bool drafts = any(\[\](const StepKind\& kind) { return kind|bool drafts = !any([](const StepKind\& kind) { return !kind|runtime/session/batch_tiers_test.cc
batch_waits|runtime/session/batch.cc|if ((\*each)->wanted->waits()) waiting_|if (false) waiting_|runtime/session/batch_tiers_test.cc
batch_workspace|runtime/session/runner.cc|^  Rest();|  ;|runtime/session/batch_tiers_test.cc
batch_rests|runtime/session/batch.cc|member.session.runner().Rest();|;|runtime/session/batch_tiers_test.cc
batch_abandons|runtime/session/runner_rank.cc|if (failed \&\& !step.kind.IsDraft()) {|if (failed \&\& false) {|runtime/session/batch_tiers_test.cc
batch_host|offload/kv/staging.cc|asked_ == 0 \&\& steps_.size() == 1|asked_ == 0|runtime/session/batch_tiers_test.cc
staging_once|offload/kv/staging.cc|std::exchange(fetched\[Index(place)\], 1) != 0|fetched[Index(place)] != 0|offload/kv/forks_test.cc
staging_shared_place|offload/kv/staging.cc|    places_\[contents\] = place;|    (void)places_;|offload/kv/forks_test.cc
staging_stolen|offload/kv/staging.cc|    ahead_.place.erase(std::exchange(ahead_.contents\[Index(place)\], 0));|    ;|offload/kv/forks_test.cc
staging_arrived|offload/kv/staging.cc|  return arrived_;|  return absl::OkStatus();|offload/kv/tiered_kv_test.cc
staging_undone|offload/kv/staging.cc|for (const int64_t each : taken) taken_\[Index(each)\] = 0;|;|offload/kv/forks_test.cc
forks_planned|runtime/plan/tier_plan.cc|plan.shape.staged_pages += needs.forks.All();|;|runtime/session/batch_tiers_test.cc
forks_views|runtime/plan/session_plan.cc|(1 + forks) \* Retrieval|Retrieval|runtime/session/batch_tiers_test.cc
forks_slots|offload/tier/tier_shape.h|+ newest_pages + forks.open);|+ newest_pages);|runtime/session/batch_tiers_test.cc
forks_copied|offload/retrieval/retrieval.cc|(\*fork)->selector_ = nullptr;|;|runtime/session/batch_tiers_test.cc
at_once_counts|apps/commands/at_once.cc|return a.first > b.first;|return a.first < b.first;|apps/cli_generation_test.py
at_once_asked|apps/commands/at_once.cc|asked > 0 ?|asked > 64 ?|apps/cli_generation_test.py
part_prompt|apps/commands/part_maker.cc|Read(part.prompt, |Read(First()->task->part.prompt, |apps/cli_parts_test.py
part_seed|apps/commands/part_maker.cc|ContinueIn(\*queue_, seed()|ContinueIn(*queue_, seed() + running_ - 1|apps/cli_parts_test.py
part_failed|apps/commands/part_maker.cc|if (running_ == 0) return failed;|if (running_ * failed.ok() == 0) return failed;|apps/cli_parts_test.py
part_order|apps/commands/tree.cc|if (state == Making::State::kWaits) break;|if (state == Making::State::kWaits) continue;|apps/cli_parts_test.py
part_lines|apps/commands/part_maker.cc|if (!lines.ended) break;|if (!lines.waiting.empty()) break;|apps/cli_parts_test.py
part_shares|apps/commands/part_maker.cc|RETURN_IF_ERROR(ReadRequest(first, generator));|(void)first;|apps/cli_parts_test.py
parts_forecast|apps/commands/tree.cc|^  all.write_s \*=|  all.gaps_s *=|apps/cli_parts_test.py
parts_rate|apps/commands/total_cost.cc|decode_s_.value_or(|std::optional<double>().value_or(|apps/commands/total_cost_test.cc
best_of_least|apps/commands/generation.cc|return a.likely < b.likely;|return b.likely < a.likely;|apps/cli_generation_test.py
best_of_mean|apps/commands/generation.cc|static_cast<double>(likely.size())|1.0|apps/cli_generation_test.py
bench_forks|apps/commands/bench.cc|ssize(sessions) < row->parallel|ssize(sessions) < 2|apps/cli_bench_test.py
batch_page_rows|models/decoder/decoder.cc|if (rows + parts\[count\].rows > kPageTokens) break;|;|runtime/session/batch_test.cc
batch_awaits|runtime/pass/step.cc|if (sequence.before_layer) RETURN_IF|if (false) RETURN_IF|runtime/session/batch_tiers_test.cc
step_deep|runtime/pass/step.cc|parts.push_back({i, deep, own.layers});|parts.push_back({i, deep, own.shallow_layers});|runtime/session/batch_prompts_test.cc
step_order|runtime/pass/step.cc|return a.layers > b.layers;|return a.layers < b.layers;|runtime/session/batch_prompts_test.cc
step_last|runtime/pass/step.cc|own.last_row = row + count - 1;|own.last_row = row;|runtime/session/batch_prompts_test.cc
step_both|runtime/pass/step.cc|row < sequence.rows; ++row|row < 0; ++row|runtime/policies/sfi/sfi_test.cc
step_agrees|runtime/pass/step.cc|step_.sequences\[i\].status = std::move(errors\[i\]);|;|runtime/session/batch_ranks_test.cc
ranks_heads|runtime/session/runner_rank.cc|alone() ? view : Own(view)|view|runtime/session/ranks_test.cc
ranks_room|runtime/session/runner_rank.cc|return ranks_->group->Meet(site.rank, mine);|return mine;|runtime/session/batch_ranks_test.cc
ranks_works|offload/ranks/rank_group.cc|each\[i\] = FirstOf(brought);|each[i] = brought[0];|offload/ranks/rank_group_test.cc
ranks_works_turn|offload/ranks/rank_group.cc|works_\[meeting_.load(std::memory_order_acquire) % 2\]|works_[0]|offload/ranks/rank_group_test.cc
batch_beside|runtime/session/runner_rank.cc|begins\[i - static_cast<size_t>(step.beside)\]|true|runtime/session/runner_test.cc
batch_places|runtime/session/batch.cc|own.last_row = own_rows - 1;|own.last_row = own.rows.count - 1;|runtime/session/batch_tiers_test.cc
thought_start|runtime/generate/thought_splitter.cc|tags_.open.starts_with(said)|tags_.open.empty()|runtime/generate/thought_splitter_test.cc
thought_held|runtime/generate/thought_splitter.cc|thought.remove_suffix(|if (false) thought.remove_suffix(|runtime/generate/thought_splitter_test.cc
thought_behind|runtime/generate/thought_splitter.cc|answer_begin_ = first;|answer_begin_ = at_ - 1;|runtime/generate/thought_splitter_test.cc
thought_stops|runtime/generate/transcript.cc|^  if (IsAnswering()) {|  if (true) {|runtime/generate/transcript_test.cc
thought_control|runtime/generate/thought_splitter.h|id == tags_.open_id|false|runtime/generate/transcript_test.cc
thought_tags|models/chat/thought_tags.cc|kKnown) {|kKnown) { if (open != kKnown[0].open) break;|models/chat/thought_tags_test.cc
chat_variables|models/chat/chat_template.cc|interpreter.Define(name, ValueOf(rendering, value));|if (false) interpreter.Define(name, ValueOf(rendering, value));|models/chat/chat_template_test.cc
think_closed|models/chat/chat_tokens.cc|if (settings.think == false \&\& assistant_speaks) {|if (false) {|apps/cli_think_test.py
think_flag|apps/commands/command.cc|think == "off" ? TIERCEL_THINK_OFF|think == "off" ? TIERCEL_THINK_ON|apps/cli_think_test.py
think_split|apps/cli/shared_flags.cc|options->sampling.split_thought = true;|;|apps/cli_think_test.py
cpp_thrown|include/tiercel.hpp|if (thrown_ != nullptr) std::rethrow_exception(thrown_);||tests/cpp_header_test.cc
cpp_stopped|include/tiercel.hpp|if (status == TIERCEL_CANCELLED \&\& stopped_) return;||tests/cpp_header_test.cc
cpp_dropped|include/tiercel.hpp|if (ends_) return;|if (ends_ \&\& jobs_.empty()) return;|tests/cpp_header_test.cc
cpp_json|include/tiercel.hpp|json.pop_back();||tests/cpp_header_test.cc
think_begins|runtime/generate/generate.cc|const bool thinks =|const bool thinks = false \&\&|apps/cli_think_test.py
message_begins|models/chat/chat_tokens.cc|return longest ? EndsInThought|return false ? EndsInThought|models/chat/chat_tokens_test.cc
think_told|models/chat/chat_tokens.cc|{std::optional<bool>(), std::optional(true), std::optional(false)}) {|{std::optional<bool>(), std::optional(false)}) {|models/chat/chat_tokens_test.cc
cut_in_thought|apps/commands/summary.cc|<int64_t>() + tokens < context|<int64_t>() + tokens < 0|apps/commands/summary_test.cc
thought_again|apps/commands/follow_up.cc|generator_->thought());|"");|apps/cli_think_test.py
kwargs_large|models/chat/chat_template.cc|if (const auto number = TooLarge(variables)) {|if (const auto number = TooLarge("")) {|models/chat/chat_template_test.cc
only_template|models/chat/chat_template.cc|if (named.size() == 1) return|if (named.size() == 9) return|models/chat/chat_template_test.cc
staging_left|offload/kv/staging.cc|^    EndLayers();|    ;|offload/kv/forks_test.cc
staging_forgotten|offload/kv/staging.cc|^  Leave(step);|  (void)step;|offload/kv/forks_test.cc
staging_places|offload/kv/staging.cc|for (const int64_t contents : added) places_.erase(contents);|;|offload/kv/forks_test.cc
forks_below|runtime/plan/tier_plan.cc|page_layers += needs.forks.All() \* needs.layers;|;|runtime/plan/tier_plan_test.cc
forks_on_disk|runtime/plan/tier_plan.cc|slot_bytes - shape.forks.All(), 0|slot_bytes, 0|runtime/plan/tier_plan_test.cc
forks_pool|offload/tier/tier_shape.h|return context_pages + forks.All();|return context_pages;|runtime/plan/tier_plan_test.cc
forks_folds|runtime/plan/session_plan.cc|needs.workspace += Decoder::FoldBytes(config, RowsTogether());|;|runtime/plan/session_plan_test.cc
forks_bounds|runtime/plan/session_plan.cc|options.forks > kMostForks|false|runtime/plan/session_plan_test.cc
forks_page|runtime/plan/session_plan.cc|pages(adds) + 1|pages(adds)|runtime/plan/session_plan_test.cc
batch_callback|runtime/api/generate_api.cc|return batch->OnCaller(call) .. more;|call(); return more;|runtime/api/batch_api_test.cc
batch_status|runtime/api/generate_api.cc|all\[i\].Report(ends\[i\]);||runtime/api/batch_api_test.cc
batch_params|runtime/api/batch_entry.cc|read.params_ = \*params;|;|runtime/api/batch_api_test.cc
batch_prompt|runtime/api/batch_entry.cc|return ReadInto(|return PrefillInto(|runtime/api/batch_api_test.cc
queue_room|runtime/api/queue.cc|HasRoom(waiting_.front());|true;|runtime/api/queue_api_test.cc
queue_most|runtime/api/queue.cc|running_.size() < at_once_|running_.size() <= at_once_|runtime/api/queue_api_test.cc
queue_in_use|runtime/api/turns.cc|return session.in_queue ? InUse() : absl::OkStatus();|return session.in_queue \&\& false ? InUse() : absl::OkStatus();|runtime/api/queue_api_test.cc
queue_lends|runtime/api/queue.cc|turns->Lend();|(void)turns;|runtime/api/queue_api_test.cc
queue_ends|runtime/api/queue.cc|if (ends_) return CancelledError();|;|runtime/api/queue_api_test.cc
queue_residue|runtime/api/queue.cc|if (job->cancelled) session|if (false) session|runtime/api/queue_api_test.cc
queue_thrown|runtime/api/queue.cc|job.status = thrown.ok() ? made : thrown;|job.status = made;|runtime/api/queue_api_test.cc
queue_cancels|runtime/api/queue.cc|if (ends_) Cancel(\*job);|;|runtime/api/queue_api_test.cc
queue_released|runtime/api/queue.cc|if (taken != nullptr) Release(taken);|;|runtime/api/queue_api_test.cc
texts_in_order|apps/commands/token_writer.cc|if (text == next_) {|if (text >= next_) {|apps/cli_generation_test.py
draw_block|kernels/token/distribution.cc|i += kNoiseIds - 1;|i += kNoiseIds;|kernels/token/distribution_test.cc
draw_winner|kernels/token/distribution_cpu.cc|> 1 - u ? 1 : 0|> 1 ? 1 : 0|kernels/token/distribution_test.cc
module_sum|kernels/device/cuda/cuda_module.cc|module->kernels_sum != std|module->kernels_sum == nullptr \&\& "" != std|kernels/device/cuda/cuda_module_test.cc
module_kernels|kernels/device/cuda/cuda_module.cc|KernelBody::first = (|(void)(|kernels/device/cuda/cuda_module_test.cc
queue_unmarked|kernels/device/cuda/cuda_queue.cc|return kUnmarked;|return last_;|kernels/device/cuda/cuda_module_test.cc
queue_busy|kernels/device/cuda/cuda_queue.cc|error == kCudaNotReady|error == kCudaInvalidValue|kernels/device/cuda/cuda_module_test.cc
queue_pinned|kernels/device/cuda/cuda_queue.cc|return seen == pinned;|return seen != nullptr;|kernels/device/cuda/cuda_module_test.cc
queue_events|kernels/device/cuda/cuda_queue.cc|cuda_.destroy_event(event)|(void)event|kernels/device/cuda/cuda_module_test.cc
pack_order|offload/move/gpu_link.cc|transfer.bytes > kSmallBytes .. ComesDown(transfer)|transfer.bytes > kSmallBytes|offload/move/gpu_link_test.cc
pack_turn|offload/move/gpu_link.cc|^  RETURN_IF_ERROR(Unpack());||offload/move/gpu_link_test.cc
pack_room|offload/move/gpu_link.cc|at + transfer.bytes > kPackBytes|packed_bytes_ + kPacket + transfer.bytes > kPackBytes|offload/move/gpu_link_test.cc
pack_skew|offload/move/gpu_link.cc|kPacket \* kPacket + skew|kPacket * kPacket + skew / 16|offload/move/gpu_link_test.cc
pack_sent|offload/move/gpu_link.cc|  buffer.sent = copies_->Mark();$||offload/move/gpu_link_test.cc
pack_tail|kernels/device/cuda/copy_words.cu|t.index < bytes - tail|t.index < bytes - tail - 1|offload/move/gpu_link_test.cc
narrow_place|apps/reader/places.cc|sections.size() == 1|sections.size() == 7|apps/reader/places_test.cc
supported_gain|apps/commands/supported.cc|sentence.gain < kLeastGain|sentence.gain < 0|apps/commands/supported_test.cc
roofline_passes|bench/roofline.py|size = passes(rows) \* matrix.n|size = matrix.n|bench/roofline_test.py
roofline_tiles|bench/roofline.py|whole(of_head, FAST_TILE if fast else of_warp)|of_head|bench/roofline_test.py
roofline_issued|bench/roofline.py|kernels\[kernel\]\["instructions"\] if kernel else 1|1|bench/roofline_test.py
predicted_rest|bench/policies_predicted.py|link / (1 - there)|link|bench/policies_predicted_test.py
sass_saved|tests/sass_check.py|MORE_THAN_SAVED \* found|2 * found|tests/sass_check_test.py
sass_flying|tests/sass_check.py|32 \* once|64 * once|tests/sass_check_test.py
sass_main_loops|tests/sass_check.py|>= 0.4 \* most|>= 0|tests/sass_check_test.py
last_fragment|kernels/layer/packed_device.h|const bool both = 2 \* pair + 1 < blocks;|const bool both = pair >= 0;|kernels/layer/matmul_test.cc
fragment_rows|kernels/layer/matmul.cu|in_fragments / 16 < left|in_fragments / 16 < left - 1|kernels/layer/matmul_test.cc
half_sums|kernels/layer/matmul.cu|SumOf(of_x\[2 + j % 2\], h)|SumOf(of_x[2 + j % 2], 0)|kernels/layer/matmul_test.cc
panel_order|kernels/layer/matmul.cc|output.weights->order() != order|output.weights->order() < order|kernels/layer/matmul_test.cc
float_barrier|kernels/layer/matmul.cu|Barrier();  // the stage is there.*||kernels/layer/matmul_test.cc
float_left|kernels/layer/matmul.cu|row >= from.rows_left|row > from.rows_left|kernels/layer/matmul_test.cc
float_rows|kernels/layer/matmul.cu|t.lane() / 8 + 4 \* i|t.lane() / 8 + 3 * i|kernels/layer/matmul_test.cc
row_barrier|kernels/layer/matmul_row.cu|WarpBarrier();  // all have read.*||kernels/layer/matmul_test.cc
row_wait|kernels/layer/matmul_row.cu|CopyWait<kStages - 2>|CopyWait<kStages - 1>|kernels/layer/matmul_test.cc
row_links|kernels/layer/matmul_row.cu|Barrier();  // links are there.*||kernels/layer/matmul_test.cc
row_rounds|kernels/layer/matmul_row.cu|half = half == 0 ? kRoundLinks : 0|half = 0|kernels/layer/matmul_test.cc
odd_fragments|kernels/layer/packed_layout.h|block + 1 == blocks|block + 2 == blocks|kernels/layer/packed_matrix_test.cc
stage_barrier|kernels/layer/matmul.cu|Barrier();  // this stage is there.*||kernels/layer/matmul_test.cc
error_lane|kernels/layer/quantise.cu|error, 0, kLanes|error, 1, kLanes|kernels/layer/matmul_test.cc
normed_half|kernels/layer/quantise.cu|x\[i + Q8Rows::kLanes\] \* factor|x[i + Q8Rows::kLanes]|kernels/layer/matmul_test.cc
normed_turns|kernels/layer/quantise.cu|first += at_once|first += 2 * at_once|kernels/layer/matmul_test.cc
gated_row|kernels/layer/quantise.cu|up\[row \* rows.in.k + i\]|up[i]|kernels/layer/matmul_test.cc
prologue_mixed|kernels/layer/matmul_gpu.cc|(WayOf(i) != Way::kQ8) return false|(WayOf(i) == Way::kF16) return false|kernels/layer/matmul_test.cc
prologue_stride|kernels/layer/matmul.cc|after.x_stride = p.outputs.*||kernels/layer/matmul_test.cc
rows_bound|kernels/layer/matmul.cu|r >= rows|r > rows|kernels/layer/matmul_test.cc
page_start|kernels/kv/page_range.cc|if (past == 0)|if (past < kPageAlignment)|kernels/kv/key_norms_test.cc
page_seen_start|kernels/attention/attention_pages.cc|RETURN_IF_ERROR(CheckPageStart("Attention", start, page));||kernels/attention/attention_test.cc
part_first|kernels/attention/attention.cc|at == 0 \&\& !p_.Continues()|at == 0|kernels/attention/attention_test.cc
part_sums|kernels/attention/attention.cc|p_.part.sum.raw() + place|p_.part.sum.raw() + query|kernels/attention/attention_test.cc
part_last|kernels/attention/attention_gpu.cc|last \&\& p_.part.end == AttentionPart::kToTheEnd|last|kernels/attention/attention_test.cc
part_pages|kernels/attention/attention_pages.cc|std::max(first, p.part.first)|first|kernels/attention/attention_test.cc
plan_refused|runtime/plan/session_plan.cc|!CheckSessionOptions(model.config, options).ok()|options.context < 0|runtime/plan/plan_test.cc
share_lists|offload/kv/host_attention.cc|device.Send(to + at, from + at|device.Send(to + at, from|offload/kv/host_attention_test.cc
host_fold|offload/kv/host_attention.cc|const bool continues = p.part.first < host.first|const bool continues = p.part.first > host.first|offload/kv/host_attention_test.cc
host_after|offload/kv/host_attention.cc|p.part.first = end;|p.part.first = end - 1;|offload/kv/host_attention_test.cc
host_rate|offload/kv/host_attention.cc|host.count \* p.layout.PageBytes()|p.layout.PageBytes()|offload/kv/host_attention_test.cc
host_share|offload/tier/tier_shape.h|(link - compute_s)|(link + compute_s)|offload/kv/host_attention_test.cc
host_fetched|offload/kv/staging.cc|auto page = step->away.begin() + step->host; page|auto page = step->away.begin(); page|runtime/session/tiers_test.cc
host_ahead|offload/kv/staging.cc|only.later.begin() + HostsOf|only.later.begin() + 0 * HostsOf|runtime/session/tiers_test.cc
host_observed|offload/retrieval/retrieval.h|certain_ .. InSteps() ? 0|certain_ \&\& InSteps() ? 0|runtime/session/tiers_test.cc
fold_warp|kernels/attention/fold_wave.h|if (warp == t.warp()) carried|if (warp == 0) carried|kernels/attention/attention_test.cc
fold_unseen|kernels/attention/fold_wave.h|= !(new_weights\[j\] < 0.0f);|= new_weights[j] < 2.0f;|kernels/attention/attention_test.cc
fold_tile|kernels/attention/attention.cu|folded.sum == 0.0f ? kUnseen : old_weight|old_weight|kernels/attention/attention_test.cc
fold_page|kernels/attention/attention.cu|Barrier();  // all are done with the page before||kernels/attention/attention_test.cc
ring_queue|kernels/device/cuda/send_ring.cc|RETURN_IF_ERROR(cuda_.Await(left_.1 - half_.));||offload/move/gpu_queues_test.cc
pinned_twice|offload/move/pinned_blocks.cc|count < most && first.count. == State::kUnknown|count < most|offload/move/pinned_blocks_test.cc
pinned_early|offload/move/pinned_blocks.h|kLargeRegion = 8|kLargeRegion = 2|offload/move/pinned_blocks_test.cc
streamed_fork|offload/weights/streamed_layers.cc|return getpid() != process_;|return getpid() < process_ - 1;|offload/weights/streamed_layers_test.cc
streamed_even|offload/weights/streamed_layers.cc|(index + 1) % layers_.size()|index % layers_.size()|offload/weights/streamed_layers_test.cc
streamed_holds|offload/weights/streamed_layers.cc|if (own.holds != index) Fetch|if (!own.holds.has_value()) Fetch|offload/weights/streamed_layers_test.cc
streamed_failed|offload/weights/streamed_layers.cc|!= ErrorClass::kCancelled) own.holds.reset|== ErrorClass::kCancelled) own.holds.reset|offload/weights/streamed_layers_test.cc
streamed_place|offload/weights/streamed_layers.cc|taken_, taken_ + size|taken_, taken_|offload/weights/streamed_layers_test.cc
streamed_told|offload/weights/streamed_layers.cc|    told = now\[phase\];||offload/weights/streamed_layers_test.cc
host_layers_sum|runtime/session/session.cc|part.moves.weight_bytes +=|part.moves.weight_bytes -=|runtime/session/host_layers_test.cc
host_layers_room|runtime/model/model.cc|2 \* TakenBytesOn|1 * TakenBytesOn|runtime/session/host_layers_test.cc
host_layers_link|runtime/plan/prediction.cc|layer.up_s = Weights();|layer.up_s = 0;|runtime/plan/prediction_test.cc
session_again|runtime/session/session.cc|is_shared \&\& tries|false \&\& is_shared \&\& tries|tests/hosted_faults_test.cc
gpu_blocks|kernels/device/cuda/gpu_memory.cc|bytes <= kBlockBytes / 2|bytes <= kBlockBytes * 2|tests/hosted_test.cc
gpu_weights|models/decoder/weights.cc|bytes += taken_(\*bytes)|bytes += AlignedBytes(*bytes)|tests/hosted_test.cc
gpu_limited|runtime/machine/machine.cc|machine.device().limited() ? AlignedBytes|false ? AlignedBytes|tests/hosted_test.cc
gpu_reserve|kernels/device/device.cc| - reserve| - 0 * reserve|tests/hosted_test.cc
fill_head|runtime/pass/fill.cc|keys + own|keys|runtime/session/ranks_test.cc
kept_row_back|runtime/session/runner.cc|std::copy_n(kept_row_.data(), Vocab(), HostLogits());||runtime/session/runner_test.cc
gpu_last_case|tests/gpu/programs.py|ended.add(begun)|pass|tests/gpu/check_test.py
gpu_lost|tests/gpu/programs.py|if LOST in why|if not why|tests/gpu/check_test.py
gpu_known|tests/gpu/record.py|== PASSED:|!= OUT_OF_TIME:|tests/gpu/check_test.py
wave_mask|kernels/attention/attention.cu|cell < end \&\&|cell + 1 < end \&\&|kernels/attention/attention_test.cc
wave_hidden|kernels/attention/attention.cu|if (!kHidden .. !(weight\[c\] < 0.0f)) {|{|kernels/attention/attention_test.cc
wave_recent|kernels/attention/attention.cu|\].recent + 1;|].recent;|kernels/attention/attention_view_test.cc
wave_launch|kernels/attention/attention.cu|if (error != 0 .. w.folds) return error;|if (w.folds) return error;|kernels/attention/refused_launch_test.cc
evidence_launch|kernels/select/importance.cu|if (error != 0) return error;|(void)error;|kernels/attention/refused_launch_test.cc
select_launch|kernels/select/selector.cu|if (error != 0) return error;|(void)error;|kernels/attention/refused_launch_test.cc
flash_rescale|kernels/attention/flash_attention.cu|state.out\[d\]\[i\] \*= rescale\[i / 2\];|;|kernels/attention/flash_attention_test.cc
flash_sum|kernels/attention/flash_attention.cu|state.sum\[r\] \* rescale\[r\] + sum|state.sum[r] + sum|kernels/attention/flash_attention_test.cc
flash_zero|kernels/attention/flash_attention.cu|Store16(Packet<uint16_t>{}, place);|;|kernels/attention/flash_attention_test.cc
flash_begin|kernels/attention/flash_attention.cu|cell >= cells.begin \&\& cell|cell|kernels/attention/flash_attention_test.cc
flash_future|kernels/attention/flash_attention.cu|state.position\[r\] + 1 - cells.start;|state.position[r] + 2 - cells.start;|kernels/attention/flash_attention_test.cc
flash_whole|kernels/attention/flash_attention.cu|cells.begin > 0 .. seen\[0\] < kCells|cells.begin > 0|kernels/attention/flash_attention_test.cc
flash_values|kernels/attention/flash_attention.cu|Barrier();  // the values are there.*||kernels/attention/flash_attention_test.cc
flash_codes|kernels/attention/flash_attention.cu|block.Code(8 \* i + 2 \* w + 1)|block.Code(8 * i + 2 * w)|kernels/attention/flash_attention_test.cc
q4_of_kernel|kernels/kv/kv_element.h|at\[byte / 4\] >> e / 16 \* 4|at[byte / 4] >> 0|kernels/attention/attention_test.cc
q4_high|kernels/kv/kv_element.h|code . high << 4|code + (high << 3)|kernels/kv/kv_write_test.cc
q4_outermost|kernels/kv/kv_element.h|greatest >= -least ? greatest : least|greatest > -least ? greatest : least|kernels/kv/kv_write_test.cc
q4_zero|kernels/kv/kv_element.h|outermost == 0.0f ? 0.0f|false ? 0.0f|kernels/kv/kv_write_test.cc
q4_four|kernels/kv/kv_element.h|FloatOfByte(codes\[i / 2\] >> shift|FloatOfByte(codes[i / 2] >> (4 - shift)|kernels/attention/attention_test.cc
q4_element|kernels/kv/kv_element.h|(both >> d % kKvPiece / 16 \* 4 . 15)|(both >> d % 16 / 8 * 4 \& 15)|kernels/kv/kv_convert_test.cc
q4_lanes|kernels/kv/kv_lanes.h|d % 32 != 0|d % 32 == 0|kernels/attention/attention_test.cc
q4_simd|kernels/simd/simd.h|_mm_srli_epi16(bytes, 4) : bytes|_mm_srli_epi16(bytes, 3) : bytes|kernels/simd/simd_test.cc
q4_rule|kernels/kv/kv_row.cc|outermost / -8.0f|outermost / 8.0f|kernels/kv/kv_write_test.cc
q4_clamp|kernels/kv/kv_row.cc|std::clamp(q, 0.0f, 15.0f)|std::clamp(q, 0.0f, 14.0f)|kernels/kv/kv_write_test.cc
q4_written|kernels/kv/kv_write_cpu.cc|q\[1\]\[i\] << 4|q[1][i] << 3|kernels/kv/kv_write_test.cc
q4_kept|offload/prompt_cache/kv_format.cc|DType::kQ8_0, DType::kQ4_0};|DType::kQ8_0, DType::kQ8_0};|offload/prompt_cache/kv_format_test.cc
halves_offset|kernels/layer/fast_matmul.cu|i, W::kOffset)|i, 0)|kernels/layer/fast_matmul_test.cc
halves_minimum|kernels/layer/fast_matmul.cu|w\[i\] += W::MinOf|w[i] -= W::MinOf|kernels/layer/fast_matmul_test.cc
halves_of_six|kernels/layer/fast_matmul.cu|of_halves\[half\]|of_halves[0]|kernels/layer/fast_matmul_test.cc
halves_last_panel|kernels/layer/fast_matmul.cu|column >= target.n|column >= target.n + 1|kernels/layer/fast_matmul_test.cc
halves_tile|kernels/layer/fast_matmul.cu|if (r >= rows) continue;||kernels/layer/fast_matmul_test.cc
halves_stage|kernels/layer/fast_matmul.cu|Barrier();  // this stage.*||kernels/layer/fast_matmul_test.cc
halves_wait|kernels/layer/fast_matmul.cu|CopyWait<kStages - 2>|CopyWait<kStages - 1>|kernels/layer/fast_matmul_test.cc
halves_back|kernels/layer/fast_matmul.cu|const float undo = back\[r\];|const float undo = 1.0f;|kernels/layer/fast_matmul_test.cc
halves_range|kernels/layer/prompt_rows.cu|DType::kF16 ? 14 : 126|DType::kF16 ? 16 : 126|kernels/layer/fast_matmul_test.cc
halves_row|kernels/layer/prompt_rows.cu|row % 8 \* 4 + i % 16 / 4|row % 8 * 4 + i % 32 / 8|kernels/layer/fast_matmul_test.cc
halves_ways|kernels/layer/matmul_gpu.cc|(q8 .. !IsQuantised(type))|true|kernels/layer/fast_matmul_test.cc
halves_fit|kernels/layer/fast_matmul.h|k % 64 == 0|k % 32 == 0|kernels/layer/fast_matmul_test.cc
halves_of_prompts|models/decoder/decoder.cc|^      .fast = fast_,|      .fast = false,|tests/hosted_test.cc
fast_phase|runtime/session/runner_rank.cc|phase == Phase::kPrefill, rows|true, rows|tests/hosted_test.cc
fast_resumed|models/decoder/decoder.cc|fast_ = of_prompt|fast_ = of_prompt \&\& rows > 40|tests/hosted_test.cc
fast_kind|runtime/machine/machine.h|return options_.fast_prompts \&\& device_|return device_|runtime/machine/machine_test.cc
flash_half|kernels/device/executor/host_executor.cc|half(column \* 4 + t, 4 + k / 8, k % 2)|half(column * 4 + t, 4, k % 2)|kernels/device/matrix_step_test.cc
wave_few|kernels/attention/attention_gpu.cc|list.begin() + at, size|list.begin(), size|kernels/attention/attention_test.cc
wave_list|kernels/attention/attention_gpu.cc|of_wave.list = room_.pages.raw() + at|of_wave.list = room_.pages.raw()|kernels/attention/attention_test.cc
wave_bounds|kernels/attention/attention_gpu.cc|bounds += 2 \* head.ranges|bounds += head.ranges|kernels/attention/attention_view_test.cc
wave_last|kernels/attention/attention_gpu.cc|.last = last|.last = last \&\& first|kernels/attention/attention_test.cc
tile_wait|kernels/kv/kv_tile.h|CopyWait<0>();||kernels/kv/key_norms_test.cc
tile_part|kernels/kv/kv_tile.h|Barrier();  // this part is there.*||kernels/kv/key_norms_test.cc
tile_stage|kernels/kv/kv_tile.h|fetch(i + 1, (i + 1) % 2)|fetch(i + 1, i % 2)|kernels/kv/key_norms_test.cc
tile_packets|kernels/kv/kv_tile.h|rows.at + (start - skew)|rows.at + start|kernels/kv/key_norms_test.cc
stages_wait|kernels/device/stages.h|CopyWait<kStages - 2>();||kernels/attention/attention_test.cc
stages_barrier|kernels/device/stages.h|    Barrier();||kernels/attention/attention_test.cc
stages_turn|kernels/device/stages.h|(i + kStages - 1) % kStages);|i % kStages);|kernels/attention/attention_test.cc
stages_rest|kernels/kv/kv_ring.h|offset < skew + bytes|offset < bytes|kernels/attention/attention_test.cc
stages_whole|kernels/kv/kv_ring.h|const int last = end \* row_bytes;|const int last = end * row_bytes - kPacket;|kernels/attention/attention_test.cc
q8_halves|kernels/kv/kv_element.h|? 0x3210u : 0x5432u|? 0x3210u : 0x3210u|kernels/attention/attention_test.cc
wave_looked|kernels/attention/attention.cu|(values.end - 1) / kAtOnce|values.end / kAtOnce - 1|kernels/attention/attention_test.cc
wave_slice|kernels/attention/attention.cu|PutQueries(t, of_queries, tile, part.d);|PutQueries(t, of_queries, tile, 0);|kernels/attention/attention_test.cc
q8_place|kernels/kv/kv_element.h|(skew & 4) != 0|(skew \& 8) != 0|kernels/kv/key_norms_test.cc
dots_barrier|kernels/select/query_dots.h|Barrier();  // all are done with the elements before||kernels/select/key_scores_test.cc
block_lane|kernels/device/block_sums.h|t.index == 0) s.total|t.index == 1) s.total|kernels/select/importance_test.cc
chunk_row|kernels/select/mean_scores.cu|(head + h) \* p.out_stride|head * p.out_stride|kernels/select/mean_scores_test.cc
silent_query|kernels/select/importance.cu|w.length == 0.0f|w.length < 0.0f|kernels/select/importance_test.cc
silent_head|kernels/select/chunk_scores.cu|if (std::isnan(sum)) return;.*||kernels/select/chunk_scores_test.cc
selector_sums|kernels/select/selector.cu|Barrier();  *// the sums are there||kernels/select/selector_test.cc
greatest_equals|kernels/select/block_top_k.h|before < equals|before <= equals|kernels/select/selector_test.cc
nl_book|kernels/number/code_book.h|-49, -35|-49, -34|kernels/number/dequantize_test.cc
nl_offset|kernels/layer/packed_layout.h|book.of\[i\] + OffsetOf|book.of[i] + 1 + OffsetOf|kernels/layer/packed_matrix_test.cc
nl_places|kernels/layer/packed_device.h|places >> 1 \& 0x4444u|places >> 1 \& 0x4440u|kernels/layer/embed_test.cc
xs_scale|kernels/number/block_bytes.h|>> (2 \* j) \& 3u|>> j \& 3u|kernels/number/dequantize_test.cc
xs_pair|kernels/layer/packed_device.h|block % 2 \* 16|block % 2 * 8|kernels/layer/embed_test.cc
xs_lanes|kernels/layer/matmul_cpu_weights.h|group + 32 + block % 8 \* 16|group + 32 + block % 4 * 16|kernels/layer/matmul_test.cc
fp4_book|kernels/number/code_book.h|-6, -8, -12|-6, -8, -10|kernels/number/dequantize_test.cc
fp4_exponent|kernels/number/half.h|(exponent - 1) << 7|exponent << 7|kernels/number/half_test.cc
fp4_least|kernels/number/half.h|0x20 << exponent|0x40 << exponent|kernels/number/half_test.cc
fp4_scale|kernels/layer/packed_matrix.cc|Bf16OfExponent(ReadAs<uint8_t>(source))|Bf16OfExponent(ReadAs<uint8_t>(source + 1))|kernels/layer/packed_matrix_test.cc
fp4_bad|models/format/check_tensors.cc|std::byte{0xff}|std::byte{0xfe}|models/format/check_tensors_test.cc
q3_scale|kernels/number/block_bytes.h|(j / 4 \* 2) \& 3u|(j % 4 * 2) \& 3u|kernels/number/dequantize_test.cc
q3_third|kernels/layer/packed_matrix.cc|Bits(source + i) >> j \& 1u|Bits(source + i) >> (j ^ 1) \& 1u|kernels/layer/packed_matrix_test.cc
q3_run|kernels/simd/simd_int.h|kHeld >= kQuads ? kQuads|kHeld >= 8 ? 8|kernels/layer/matmul_test.cc
q2_min|kernels/number/dequantize.cc|Byte(p + i / 16) >> 4|Byte(p + i / 16) >> 3|kernels/number/dequantize_test.cc
q2_shift|kernels/layer/matmul_cpu_weights.h|ShiftMask<-6>(quads, 3)|ShiftMask<-4>(quads, 3)|kernels/layer/matmul_test.cc
q2_sums|kernels/layer/matmul_cpu.cc|SetI32(-x\[r\].neg_sum_low)|SetI32(-x[r].neg_sum)|kernels/layer/matmul_test.cc
q2_halves|kernels/layer/packed_device.h|low \* s.of_mins\[0\]|low * s.of_mins[1]|kernels/layer/matmul_test.cc
quant_method|models/decoder/config_hf.cc|quantised->value("quant_method", json())|json()|models/decoder/config_test.cc
embed_group|kernels/layer/packed_device.h|groups + block / kGroup|groups + block|kernels/layer/embed_test.cc
norm_place|kernels/kv/key_norms.cu|cells.start + t.index - p.first|t.index|kernels/kv/key_norms_test.cc
means_begin|kernels/kv/chunk_means.cu|start > p.begin ? start : p.begin|start|kernels/kv/chunk_means_test.cc
convert_rest|kernels/kv/kv_convert.cu|i < bytes / 2|i < bytes / 2 - 1|kernels/kv/kv_convert_test.cc
logits_wait|runtime/session/runner.cc|return stream().Synchronize();|return absl::OkStatus();|tests/hosted_test.cc
launched_at_once|kernels/device/executor/host_executor.h|stream->keep == nullptr ? run() : stream->keep(run)|run()|kernels/device/executor/hosted_stream_test.cc
lost_device|kernels/device/sim/sim_queue.cc|error = StateOf(device_).LostWith();||kernels/device/executor/hosted_stream_test.cc
lost_calls|kernels/device/cuda/cuda_error.cc|    case kCudaLaunchTimeout:||kernels/device/cuda/cuda_error_test.cc
lost_between|kernels/device/device.cc|return queue_->Check();|return absl::OkStatus();|tests/hosted_faults_test.cc
old_gpu|kernels/device/cuda/cuda_error.cc|facts.capability < kOldestCapability|facts.capability <= kOldestCapability|kernels/device/cuda/cuda_error_test.cc
no_image|kernels/device/cuda/cuda_driver.cc|facts.error = CopyWordsCuda(.*|;|kernels/device/executor/hosted_stream_test.cc
short_moment|kernels/device/cuda/gpu_memory.cc|    error = Take(bytes, \&data);||kernels/device/executor/hosted_stream_test.cc
ring_address|kernels/device/cuda/send_ring.cc|cuda_.KernelsSee(memory_)|true|kernels/device/executor/hosted_stream_test.cc
gather_barrier|offload/ranks/gather.cc|group_.Meet(rank, mine)|mine|offload/ranks/gather_test.cc
gather_neighbour|offload/ranks/gather.cc|const Columns\& columns = p.columns\[other\];|const Columns\& columns = p.columns[(other + 1) % p.columns.size()];|offload/ranks/gather_test.cc
gather_stale|offload/ranks/gather.cc|OfferOf(other, turn)|OfferOf(other, 1 - turn)|offload/ranks/gather_test.cc
gather_split|offload/ranks/gather.cc|offer.split == split|true|offload/ranks/nccl_gather_test.cc
gather_finish|offload/ranks/gather.cc|^  RETURN_IF_ERROR(stream.Synchronize());|  stream.Synchronize().IgnoreError();|offload/ranks/nccl_gather_test.cc
nccl_version|kernels/device/cuda/nccl.cc|number >= kLeastVersion|number > 0|kernels/device/cuda/nccl_test.cc
nccl_packed|offload/ranks/nccl_gather.cc|own.packed, own.bytes, p.rows, own.bytes|own.packed, own.stride, p.rows, own.bytes|offload/ranks/nccl_gather_test.cc
nccl_apart|offload/ranks/nccl_gather.cc|own.at == in_all|own.at != nullptr|offload/ranks/nccl_gather_test.cc
nccl_free|offload/ranks/gather.cc|bool threw = true;|bool threw = false;|offload/ranks/nccl_gather_test.cc
nccl_heard|offload/ranks/gather.cc|own = !status.ok() \&\& .*;|own = !status.ok();|offload/ranks/nccl_gather_test.cc
nccl_leave|offload/ranks/nccl_gather.cc|if (ClassOf(why) != ErrorClass::kCancelled) Break|Break|offload/ranks/nccl_gather_test.cc
nccl_dies|offload/ranks/nccl_gather.cc|!= ErrorClass::kCancelled) Break(why)|== ErrorClass::kOk) Break(why)|offload/ranks/nccl_gather_test.cc
nccl_broken|offload/ranks/nccl_gather.cc|status.Update(BrokenNow());||offload/ranks/nccl_gather_test.cc
nccl_looks|offload/ranks/nccl_gather.cc|return !looking_;|return true;|offload/ranks/nccl_gather_test.cc
nccl_anew|offload/ranks/nccl_gather.cc|  connected_ = false;||offload/ranks/nccl_gather_test.cc
nccl_scratch|runtime/plan/session_plan.cc|NcclGather::ScratchBytes(LogitRows(), config.vocab)|int64_t{0}|runtime/plan/session_plan_test.cc
nccl_lost|runtime/session/runner_rank.cc|RETURN_IF_ERROR(model.machine_of(rank).FindDevice());||tests/hosted_ranks_test.cc
rank_link|kernels/device/cuda/cuda_device.h|return OpenGpu(number_);|return OpenGpu();|tests/hosted_ranks_test.cc
ranks_links|runtime/plan/prediction.cc|all.swept_bytes = std::max|all.swept_bytes = std::min|tests/hosted_ranks_test.cc
ranks_fit|runtime/plan/plan.cc|if (!ranks.Fit(context)) {$|if (false) {|tests/hosted_ranks_test.cc
ranks_weights|runtime/api/session_api.cc|m.weights != nullptr) {|false) {|runtime/api/ranks_api_test.cc
ranks_opened|apps/commands/command.cc|ranks = best;|ranks = 1;|tests/hosted_cli_test.py
rank_gpus|runtime/machine/machine.cc|gpus > 0 \&\& gpus < ranks()|false|tests/hosted_ranks_test.cc
other_gpu|kernels/device/sim/sim_queue.cc|is_others(source) .. is_others(target)|is_others(source) \&\& is_others(target)|kernels/device/executor/hosted_stream_test.cc
predicted_gathers|bench/ranks_predicted.py|(ranks - 1) / ranks \* floats|1 / ranks * floats|bench/ranks_predicted_test.py
predicted_swept|bench/ranks_predicted.py|for card in cards) / 2 \* layers|for card in cards) * layers|bench/ranks_predicted_test.py
page_parts|bench/pages.py|if wanted != usual|if wanted|bench/pages_test.py
page_numbers|bench/pages.py|(len(columns) - words)|(len(columns) - 1)|bench/pages_test.py
turns_ratio|bench/ranks.py|now / before for before|before / now for before|bench/ranks_test.py
sadas_part|bench/sadas_tables.py|a - b for a, b|a for a, b|bench/sadas_tables_test.py
sadas_tag_row|bench/sadas_tables.py|begin + TAG - 1, begin|begin + TAG, begin|bench/sadas_tables_test.py
sadas_lengths|bench/sadas_tables.py|len(ids) - begin - len(tag)|len(ids) - begin|bench/sadas_tables_test.py
context_full|bench/by_context.py|zip(\*baselines)|zip(*baselines[:1])|bench/sfi_tables_test.py
speed_share|bench/speed_tables.py|value / take(full)|take(full) / value|bench/speed_tables_test.py
speed_literal|bench/speed_tables.py|DRAFT_PROMPT + 136|DRAFT_PROMPT|bench/speed_tables_test.py
papers_flag|bench/policies.py|part.replace("-", "_")|part|bench/policies_test.py
block_lengths|bench/acceptance.py|held(view, 32, length, 0.6)|held(view, 32, 16, 0.6)|bench/acceptance_test.py
hay_search|bench/haystack.py|step = -(-step // 2)|step = step // 2|bench/haystack_test.py
hay_depths|bench/haystack.py|depth \* len(hay) / 100|depth * len(hay) / 90|bench/haystack_test.py
hay_letters|bench/haystack.py|>= _SHORTEST|>= 0|bench/haystack_test.py
task_seed|bench/long_task.py|{self.name} {seed} {index}|{self.name} {index}|bench/long_task_test.py
task_sentence|bench/long_task.py|if p.strip()|if True|bench/long_task_test.py
task_others|bench/retrieval_tasks.py|others = size if where|others = 9 if where|bench/long_task_test.py
task_chain|bench/gathering_tasks.py|gaps = sorted(draw|gaps = list(draw|bench/long_task_test.py
task_zeta|bench/gathering_tasks.py|(len(counts) + 1)\*\*2|(len(counts) + 1)**1|bench/long_task_test.py
world_lies|bench/small_world.py|self.seen.get(thing, \[place\])\[-1\] == place|True|bench/long_task_test.py
world_once|bench/small_world.py|seen.count(seen\[i\]) == 1|True|bench/long_task_test.py
ruler_fits|bench/ruler.py|+ task.new_tokens <= length|<= length|bench/ruler_test.py
ruler_tail|bench/ruler.py|min(lost, gained) + 1|min(lost, gained)|bench/ruler_test.py
ruler_right|bench/ruler.py|full >= RIGHT > policy|full > policy|bench/ruler_test.py
answers_prefix|bench/answers.cc|ids.insert(ids.end(), behind.begin(), behind.end());||bench/answers_test.py
answers_form|bench/answers.cc|of_policy.form = text("form");||bench/answers_test.py
logits_gather|runtime/plan/prediction.cc|kMeeting + logit_bytes / kGathered|kMeeting + 0 * logit_bytes|runtime/plan/prediction_test.cc
named_rank|runtime/plan/session_plan.cc|"rank ", rank, " of "|"rank ", 0, " of "|runtime/plan/session_plan_test.cc
rank_fits|runtime/plan/plan.cc|= ranks.sites\[i\].Fits(context)|= ranks.Fit(context)|runtime/plan/plan_test.cc
half_writing|runtime/session/prompt_cache.cc|forget = \[this\] { writing_.reset(); };|forget = [] {};|runtime/api/out_of_memory_test.cc
lacks_memory|runtime/session/background_call.cc|status_ = lacks_memory;|status_ = MemoryError("out_of_memory", "no");|runtime/api/out_of_memory_test.cc
ranks_range|runtime/api/model_api.cc|p.tensor_parallel < 0 .. p.tensor_parallel > ModelSplit::kMostRanks|p.tensor_parallel < 0|runtime/api/ranks_api_test.cc
shared_head|models/decoder/model_split.cc|(rank - first + 1) \* split.group_ / sharing|split.group_|models/decoder/model_split_test.cc
share_rows|models/decoder/row_reader.cc|(file_row - begin) \* row_bytes|(file_row - begin) / 2 * row_bytes|models/decoder/weights_test.cc
copies_told|offload/kv/tiered_kv.cc|  status.Update(std::exchange(copied_, absl::OkStatus()));||offload/kv/copy_runs_test.cc
copies_in_place|offload/kv/in_place_kv.cc|return std::exchange(copied_, absl::OkStatus());|return absl::OkStatus();|offload/kv/copy_runs_test.cc
card_tiers|runtime/plan/session_plan.cc|prefers_device \&\& all.fits()|prefers_device|runtime/plan/session_plan_test.cc
card_memory|runtime/plan/session_plan.h|device.apart ? 0 : plan.DeviceBytes()|plan.DeviceBytes()|runtime/plan/session_plan_test.cc
one_queue|runtime/machine/machine.cc|.queue = device_->queue()|.queue = nullptr|tests/hosted_test.cc
mark_awaited|offload/move/copy_engine.cc|if (next == 0) {|if (next == 1) {|offload/move/gpu_link_test.cc
link_finish|offload/move/gpu_link.cc|RETURN_IF_ERROR(copies_->Await(copies_->Mark()));||offload/move/gpu_link_test.cc
link_buffer|offload/move/gpu_link.cc|buffer.sent = copies_->Mark();||offload/move/gpu_link_test.cc
link_group|offload/move/gpu_link.cc|return copies_->Await(std::exchange(last_group_, copies_->Mark()));|return absl::OkStatus();|offload/move/gpu_link_test.cc
link_groups|offload/move/gpu_link.cc|std::exchange(last_group_, copies_->Mark())|copies_->Mark()|offload/move/gpu_link_test.cc
unpinned|offload/tier/placement.cc|gpu_->Unpin(address);|(void)address;|offload/move/gpu_link_test.cc
ring_wait|kernels/device/cuda/send_ring.cc|RETURN_IF_ERROR(cuda_.Await(left_\[1 - half_\]));||kernels/device/executor/hosted_stream_test.cc
ring_half|kernels/device/cuda/send_ring.cc|left_\[1 - half_\]|left_[half_]|kernels/device/executor/hosted_stream_test.cc
device_first|runtime/model/model.cc|RETURN_IF_ERROR(machine_of(rank).FindDevice());||tests/hosted_faults_test.cc
own_weights|runtime/model/model.cc|RETURN_IF_ERROR(own.TakeMemory());|RETURN_IF_ERROR(own.FindDevice());|tests/hosted_test.cc
link_block|offload/move/gpu_link.cc|kGroupBytes - offset % kGroupBytes|kGroupBytes|offload/move/gpu_link_test.cc
link_error|offload/move/copy_engine.cc|if (!finished.ok()) FailBegun(finished.status());||offload/move/gpu_link_test.cc
link_interrupted|offload/move/copy_engine.cc|queue.front().next > 0|\&queue == \&queues_[1]|offload/move/copy_engine_test.cc
link_earlier|offload/move/gpu_link.cc|failed_.Update(moved.status());||offload/move/gpu_link_test.cc
choice_wait|kernels/device/stream.h|return stream.Synchronize();|return absl::OkStatus();|tests/hosted_test.cc
lanes_mask|kernels/device/executor/host_executor.cc|state == State::kWaits \&\& meeting == where|state == State::kWaits \&\& meeting.line == where.line|kernels/device/executor/host_executor_test.cc
early_copy|kernels/device/executor/host_executor.cc|running->copies.push_back({to, from, running->groups});|std::memcpy(to, from, 16);|kernels/device/executor/host_executor_test.cc
row_permutation|models/decoder/row_reader.cc|in_head % 2 \* (rotated / 2)|in_head % 2|tests/golden_logits_test.cc
wrong_weights|models/decoder/decoder.cc|{&w.up, w.up_bias.data()|{\&w.gate, w.up_bias.data()|tests/golden_logits_test.cc
residual|models/decoder/decoder.cc|StoreMode::kAdd}},|StoreMode::kAssign}},|tests/golden_logits_test.cc
unrotated_layer|models/decoder/decoder.cc|config_.Rotates(layer) ? half : 0|config_.Rotates(0 * layer) ? half : 0|tests/golden_logits_test.cc
window_context|runtime/model/model.cc|read.context = read.sliding_window;||apps/cli_files_test.py
window_usual|models/decoder/config_hf.cc|top.IsNull("sliding_window") ? 0 : family.window|family.window|models/decoder/config_test.cc
whole_heads|models/decoder/config_hf.cc|(family.partial ? part : 1)|part|models/decoder/config_test.cc
unread_types|runtime/model/model.cc|!model->checkpoint->unread().empty()|false|apps/cli_files_test.py
old_quantised|models/decoder/config_hf.cc|if (!absl::EndsWith(name, ".qweight")) return;|return;|apps/cli_files_test.py
own_end|models/chat/chat_tokens.cc|tokenizer.IsControl(\*end) \&\&|true \&\&|apps/cli_files_test.py
begun_thought|models/chat/thought_tags.cc|text.find(tags.close, open) == text.npos|text.find(tags.close, 0) == text.npos|models/chat/thought_tags_test.cc
any_thought|models/chat/chat_tokens.cc|return absl::EndsWith(absl::StripTrailingAsciiWhitespace(text), tags.open);|return EndsInThought(text, tags);|models/chat/chat_tokens_test.cc
cut_thought|runtime/generate/generate.cc|if (transcript.in_thought()) report.finish_reason = "length";||apps/cli_think_test.py
hybrid_experts|models/decoder/config_hf.cc|value_or(kUsualExperts)|value_or(0 * kUsualExperts)|models/decoder/families_test.cc
hybrid_positions|models/decoder/config_hf.cc|value_or("") != "rope"|value_or("rope") != "rope"|models/decoder/families_test.cc
hybrid_columns|models/decoder/config_hf.cc|family.hybrid ? "shared_intermediate_size"|false ? "shared_intermediate_size"|tests/golden_logits_test.cc
hybrid_names|models/decoder/tensor_finder.cc|name.hf == usual \&\& Has|name.hf != usual \&\& Has|tests/golden_logits_test.cc
unrotated_number|models/decoder/config.cc|layer % unrotated_interval != 0|(layer - 1) % unrotated_interval != 0|models/decoder/families_test.cc
paired_family|models/decoder/families.cc|"smollm3", .pairs_rows = true|"smollm3", .pairs_rows = false|tests/golden_logits_test.cc
scaled_embedding|models/decoder/decoder.cc|.scale = config_.embedding_scale|.scale = 1|tests/golden_logits_test.cc
scaled_residual|models/decoder/decoder.cc|.scale = config_.residual_scale|.scale = 1|tests/golden_logits_test.cc
scaled_logits|models/decoder/decoder.cc|.scale = config_.logit_scale|.scale = 1|tests/golden_logits_test.cc
scaled_scores|runtime/plan/session_plan.h|config.attention_scale.value_or(0)|0|tests/golden_logits_test.cc
scale_before_bias|kernels/layer/matmul_ref.cc|value += output.bias.raw()\[column\];|value += output.bias.raw()[column] / scale;|kernels/layer/matmul_test.cc
kernel_scale|kernels/layer/matmul_device.h|value \*= scale;|value *= 1 + 0 * scale;|kernels/layer/matmul_test.cc
kernel_embedding|kernels/layer/embed.cu|p.scale \*$|1.0f *|kernels/layer/embed_test.cc
query_scale|kernels/kv/kv_write.cc|q\[i\] \*= to.q_scale;|q[i] *= 1;|kernels/kv/kv_write_test.cc
query_growth|models/decoder/decoder.cc|.q_scale = config_.QueryScale(position)|.q_scale = 1|tests/golden_logits_test.cc
query_step|models/decoder/decoder.cc|std::min(end, config_.NextQueryScale(position))|end|tests/golden_logits_test.cc
longrope_list|models/decoder/rope_frequencies.cc|is_longer ? factors.of_long : factors.of_short|is_longer ? factors.of_short : factors.of_long|tests/golden_logits_test.cc
longrope_tensor|models/decoder/weights.cc|"rope_factors_short", in_tensors|"rope_factors_long", in_tensors|tests/golden_logits_test.cc
longrope_end|models/decoder/config.cc|if (end <= original) return 0;|if (end < original) return 0;|models/decoder/families_test.cc
dynamic_base|models/decoder/rope_frequencies.cc|(scaling.factor - 1);|scaling.factor;|models/decoder/rope_frequencies_test.cc
batch_frequencies|models/decoder/decoder.cc|rope_length_ != rope_length|rope_length_ < 0|tests/families_test.cc
batch_rope_length|runtime/pass/step.cc|own.rope_length});|0});|tests/families_test.cc
text_rope_length|runtime/session/prompt_cache.cc|{"length", length},|{"length", 0 * length},|tests/families_test.cc
fused_family|models/decoder/families.cc|{.name = "phi3"},|{.name = "phi3", .pairs_rows = true},|tests/golden_logits_test.cc
kernel_query_rest|kernels/kv/kv_write.cu|x\[i + p.rotation.half\] \*= scale;||kernels/kv/kv_write_test.cc
kv_cell|kernels/kv/kv_layout.h|static_cast<int64_t>(head) \* kPageTokens + cell) \* KRowBytes|static_cast<int64_t>(head) * kPageTokens + (cell \& 63)) * KRowBytes|tests/golden_logits_test.cc
digest_count|kernels/kv/chunk_means_ref.cc|static_cast<float>(rows)|static_cast<float>((rows + 3) / 4 * 4)|kernels/kv/chunk_means_test.cc
digest_rounding|kernels/kv/chunk_means_ref.cc|F16FromF32(sum\[i\] / count)|F16FromF32(sum[i] / count) \& 0xfffe|kernels/kv/chunk_means_test.cc
key_causal|kernels/select/key_scores.cc|b.seen = p.position + 1 - start|b.seen = p.position - start|kernels/select/key_scores_test.cc
key_row|kernels/select/key_scores_cpu.cc|b.seen + row - first|b.seen - first|kernels/select/key_scores_test.cc
norm_root|kernels/kv/key_norms_cpu.cc|Sqrt(sum)|sum|kernels/kv/key_norms_test.cc
evidence_mean|kernels/select/importance_cpu.cc|Set1(0.5f)) - Exp|Set1(1.0f)) - Exp|kernels/select/importance_test.cc
evidence_decay|kernels/select/importance.cc|before\[j\] \* p.decay|before[j] * (1 - 0 * p.decay)|kernels/select/importance_test.cc
evidence_before|kernels/select/importance.cc|const before = p.before|const before = p.importance|kernels/select/importance_test.cc
evidence_decay_gpu|kernels/select/importance.cu|p.before.raw()\[at\] \* p.decay|p.before.raw()[at]|kernels/select/importance_test.cc
evidence_unseen|kernels/select/importance_cpu.cc| - Exp(Set1(-87.0f))||kernels/select/importance_test.cc
prior_edge|kernels/select/selector_body.h|kLeastShare = 1e-12f|kLeastShare = 1e-11f|kernels/select/selector_test.cc
prior_age|kernels/select/selector_body.h|kAgePower = 1.8f|kAgePower = 1.7f|kernels/select/selector_test.cc
prior_most|kernels/select/selector_cpu.cc|lambda < h.most_prior ? lambda : h.most_prior|h.most_prior|kernels/select/selector_test.cc
window_width|kernels/select/selector_cpu.cc|width = 2 \* h.reach + 1|width = 2 * h.reach|kernels/select/selector_test.cc
selector_least|kernels/select/selector.cc|p.suppression >= -1.0f|p.suppression >= 0.0f|kernels/select/selector_test.cc
rival_share|kernels/select/selector_body.h|kLnLeastShare = -27.6310211f|kLnLeastShare = -25.3f|kernels/select/selector_test.cc
rival_warmth|kernels/select/selector_body.h|kTemperature = 2.0f|kTemperature = 2.2f|kernels/select/selector_test.cc
selector_tie|kernels/select/selector_ref.cc|order.begin(), order.end(), 0|order.rbegin(), order.rend(), 0|kernels/select/selector_test.cc
fork_reference|offload/kv/in_place_kv.cc|pool_->AddReference(slot)|(void)slot|offload/kv/kv_store_test.cc
top_k_tie|kernels/select/top_k.cc|equals-- > 0|equals-- > 1|kernels/select/top_k_test.cc
top_k_always|kernels/select/top_k.cu|out\[i\] = static_cast<int32_t>(i)|out[i] = static_cast<int32_t>(always)|kernels/select/top_k_test.cc
digest_range|offload/retrieval/digests.cc|(kv.end + rows) / shape_.chunk|(kv.end + rows - 1) / shape_.chunk|offload/retrieval/digests_test.cc
view_ring|offload/retrieval/compact_kv.h|page % shape_.recent_pages)|(page - recent_begin_ / kPageTokens) % shape_.recent_pages)|offload/retrieval/compact_kv_test.cc
evicted_bytes|offload/retrieval/compact_kv.cc|!wanted(\*place)) \*place = kNone|!wanted(*place)) (void)kNone|offload/retrieval/compact_kv_test.cc
view_shrunk|offload/retrieval/retrieval.cc|RecentBegin(end) >= compact_.recent_begin()|end > compact_.recent_begin()|offload/retrieval/retrieval_test.cc
view_room|offload/retrieval/retrieval.cc|          kPageTokens - 1 +|          kPageTokens - 2 +|offload/retrieval/retrieval_test.cc
late_copies|offload/retrieval/retrieval.cc|certain \&\& layer < shape_.layers|certain \&\& layer < 0|offload/retrieval/retrieval_test.cc
lost_chunks|offload/retrieval/retrieval.cc|if (!status.ok()) ready_ = false;|if (!status.ok()) return absl::OkStatus();|runtime/session/faults_test.cc
several_sinks|offload/retrieval/retrieval.cc|std::min(CeilDiv(size.sink, size.chunk), chunks)|std::min(int64_t{1}, chunks)|offload/retrieval/retrieval_test.cc
run_offset|offload/kv/tiered_kv.cc|v.offset += layout_.VOffset(run.head, cell)|v.offset += layout_.VOffset(0, cell)|offload/kv/copy_runs_test.cc
urgent_waits|offload/move/copy_engine.cc|{Turn::kUrgent, Turn::kInOrder}|{Turn::kInOrder, Turn::kUrgent}|offload/move/copy_engine_test.cc
top_p_crossing|kernels/token/distribution_cut.cc|if (kept >= needed|if (kept + w >= needed|kernels/token/distribution_test.cc
draw_bound|kernels/token/distribution.cc|to_win <= 1 - u)|to_win <= 2 * (1 - u))|kernels/token/distribution_test.cc
dry_breaker|kernels/token/dry.cc|std::min(match, most)|match|kernels/token/dry_test.cc
dry_longest|kernels/token/dry.cc|length = std::max(length, repeated)|length = repeated|kernels/token/dry_test.cc
dry_box|kernels/token/dry.cc|std::min(right - i, matches\[i - left\])|matches[i - left]|kernels/token/dry_test.cc
dry_single|kernels/token/dry.cc|IsBreaker(id)) continue|IsBreaker(id) \&\& length > 2) continue|kernels/token/dry_test.cc
dry_answer|kernels/token/distribution.cc|p.tokens + p.answer_begin|p.tokens|kernels/token/distribution_test.cc
dry_row|kernels/token/distribution.cc|p.tokens + p.before + row);$|p.tokens + p.before + 0 * row);|kernels/token/distribution_test.cc
distribution_cut_tie|kernels/token/distribution_cut.cc|: id < other.id|: id > other.id|kernels/token/distribution_test.cc
distribution_greatest|kernels/token/distribution.cc|std::max_element(first, first + row_ranges_)|std::max_element(first, first + 1)|kernels/token/distribution_test.cc
distribution_floor|kernels/token/distribution_cpu.cc|Exp(x) - Exp(Set1(-87.0f))|Exp(x)|kernels/token/distribution_test.cc
distribution_last_sum|kernels/token/distribution_cpu.cc|lanes = lanes + LoadN(weights + i, last);||kernels/token/distribution_test.cc
hidden_infinity|kernels/token/distribution_cpu.cc|return result + faults|return result|kernels/token/distribution_test.cc
view_staging_reused|offload/retrieval/view_staging.cc|if (arrivals_.empty()) used_ = 0|used_ = 0|offload/retrieval/view_staging_test.cc
view_staging_kept|offload/retrieval/retrieval.cc|    staging_.Drop(layer);|    (void)layer;|offload/retrieval/retrieval_test.cc
view_staging_values|offload/retrieval/view_staging.cc|{here.v, place.v, here.rows}|{here.k, place.v, here.rows}|offload/retrieval/retrieval_test.cc
convert_tail|kernels/kv/kv_convert_cpu.cc|out + BytesOf(to, begin)|out + BytesOf(to, 0)|kernels/kv/kv_convert_test.cc
byte_columns|kernels/kv/kv_lanes.h|block + 2 + d % 32;|block + 2 + d % 16;|kernels/attention/attention_test.cc
view_types|runtime/plan/session_plan.cc|view_layout.type_k = view_layout.type_v = DType::kQ8_0|view_layout.type_k = DType::kQ8_0|runtime/plan/session_plan_test.cc
noise_bits|kernels/number/philox.h|(bits) + 0.5) \* 0x1p-32|(bits >> 22) + 0.5) * 0x1p-10|kernels/token/distribution_test.cc
noise_position|runtime/drafting/rounds.cc|{.seed = options_.seed, .start = end}|{.seed = options_.seed, .start = 0 * end}|runtime/session/session_test.cc
trial_dry_row|kernels/token/distribution.cc|p.tokens + p.before + row);$|p.tokens + p.before + 0 * row);|tests/text_trial.py
trial_page_back|offload/kv/residency.cc|moves_.reopened_pages += page.layers;|transfers.pop_back();|tests/session_trial_test.cc
trial_turns|offload/kv/tiered_kv.cc|if (!step_->in_place) status = residency_.BringBack|if (false) status = residency_.BringBack|tests/session_trial_test.cc
held_layers|runtime/session/prompt_cache.h|writing_ != nullptr .. (prompt_ != nullptr && prompt_->holds())|writing_ != nullptr|runtime/session/unfinished_prompt_test.cc
draft_rest|runtime/api/session_calls.h|^    session->policy->Rest();||runtime/api/memory_api_test.cc
trial_position|runtime/drafting/rounds.cc|{.seed = options_.seed, .start = end}|{.seed = options_.seed, .start = 0 * end}|tests/text_trial.py
bytes_page|offload/kv/tiered_kv.cc|bytes = pages_.OnDevicePage(layer, page)|bytes = pages_.OnDevicePage(0, page)|tests/same_bytes.py
bytes_plan|runtime/plan/plan.cc|\["min_device_bytes"\] = least|["min_device_bytes"] = least + 1|tests/same_bytes.py
bytes_unchecked|drafts/verdict.h|i < tokens.size() \&\& drawn == tokens\[i\]) continue|i < tokens.size() \&\& i * (drawn != tokens[i]) == 0) continue|tests/same_bytes.py
bytes_read|offload/disk/page_reader.cc|\*read_bytes += static_cast<uint64_t>(done.result);|*read_bytes += 1;|tests/same_bytes.py
folder_trial_page|offload/prompt_cache/kv_file.cc|PageSum(bytes, page_bytes) != info_.sums\[sum\]|info_.sums[sum] == 0|tests/folder_trial.py
folder_trial_tokens|offload/prompt_cache/kv_folder.cc|CommonBeginning(info.ids, ids);|static_cast<int64_t>(std::min(info.ids.size(), ids.size()));|tests/folder_trial.py
stop_hold|runtime/generate/stop_matcher.cc|certain = held_.size() - hold|certain = held_.size()|runtime/generate/stop_matcher_test.cc
stop_cut_token|runtime/generate/transcript.cc|all \&\& given_ < text_.size()|all \&\& given_ > text_.size()|runtime/generate/transcript_test.cc
stop_at_length|runtime/generate/generate.cc|if (!more) return "stop";|if (!more \&\& left > 0) return "stop";|runtime/session/session_test.cc
resumed_tokens|runtime/session/interrupted_prefill.h|stopped_->tokens == tokens|stopped_->tokens.size() == tokens.size()|runtime/session/tiers_test.cc
think_latch|runtime/policies/sadas/think_schedule.h|thinking_ \&\& !(options_->latch|thinking_ \&\& (options_->latch|runtime/policies/sadas/think_schedule_test.cc
think_border|runtime/policies/sadas/think_schedule.cc|    matched_ = pattern_->border\[matched_\];|    matched_ = 0;|runtime/policies/sadas/think_schedule_test.cc
think_most|runtime/policies/sadas/think_schedule.cc|thought_ < options_->most|thought_ <= options_->most|runtime/policies/sadas/think_schedule_test.cc
think_scored|runtime/policies/sadas/think_schedule.cc|id != \*must|id < 0|runtime/policies/sadas/think_schedule_test.cc
think_literal|runtime/policies/sadas/think_schedule.cc|return !has_thought_|return thinking()|runtime/policies/sadas/sadas_test.cc
kept_answer|runtime/policies/sadas/sadas_params.cc|closed_at() + 1 - params.window|closed_at() - params.window|runtime/policies/sadas/sadas_test.cc
forced_place|drafts/forced_target.h|if (i > 0) ahead|if (i > 1) ahead|runtime/policies/sadas/sadas_test.cc
plain_kept|runtime/session/forward.cc|view == prompt_view_|view == view|runtime/policies/sadas/sadas_test.cc
speed_header|runtime/session/sequence_extent.cc|ends_so ? std::ssize(header_) : 1|ends_so ? 1 : 1|runtime/session/sequence_extent_test.cc
speed_kept|runtime/session/sequence_extent.cc|past_.push_back({answer_begin_, end})|past_.push_back({end, end})|runtime/session/sequence_extent_test.cc
speed_entries|runtime/session/sequence_extent.cc|deep += sinks_end - begin_|deep += 0 * (sinks_end - begin_)|runtime/session/sequence_extent_test.cc
speed_cut|offload/kv/view.cc|layer < full_layers_) return nullptr|layer <= full_layers_) return nullptr|runtime/policies/speed/speed_test.cc
speed_resumed|runtime/pass/pass.cc|first = std::max(row, range.begin)|first = row|runtime/pass/pass_test.cc
speed_pages|offload/kv/tiered_kv.cc|layer < LayersOf(i)|layer < layers_|runtime/policies/speed/speed_test.cc
speed_host|offload/kv/page_table.cc|page.below ? page.layers : 0|page.below ? tier_.shape.layers : 0|runtime/policies/speed/speed_test.cc
speed_planned|runtime/plan/tier_plan.cc|(needs.layers - needs.shallow_layers)|0|runtime/policies/speed/speed_test.cc
speed_answer|offload/retrieval/retrieval.cc|layer >= compact_.above().layers|layer > compact_.above().layers|runtime/policies/speed/speed_test.cc
speed_clip|offload/retrieval/compact_kv.cc|place + above_.answer_begin % shape_.chunk|place|runtime/policies/speed/speed_test.cc
speed_anchor|offload/retrieval/compact_kv.cc|std::min(sinks, first + above_.sinks)|sinks|runtime/policies/speed/speed_test.cc
speed_stopped|runtime/session/sequence.cc|prompt_begins_ = prompt_had_begun_|(void)prompt_had_begun_|runtime/session/sequence_test.cc
speed_once|runtime/session/forward.cc|sequence_.prompt_begins() \&\& sequence_.kv_length() > answer|sequence_.kv_length() > answer|runtime/policies/speed/speed_test.cc
speed_room|runtime/policies/speed/speed.cc|speed.depth.anchor > params.view.budget|speed.depth.anchor > params.view.budget + 1|runtime/policies/speed/speed_test.cc
speed_none|runtime/policies/speed/prompt_depth.cc|cut >= 1 \&\& cut <=|cut >= 0 \&\& cut <=|runtime/policies/speed/speed_test.cc
speed_whole|runtime/session/session.cc|sequence_.extent().has_value() \&\& !sequence_.extent()->Reads().IsFull()|sequence_.extent().has_value()|apps/cli_policies_test.py
speed_longest|runtime/plan/session_plan.cc|PositionsAbove() < longest|PositionsAbove() <= longest|apps/cli_policies_test.py
speed_declared|runtime/policies/speed/prompt_depth.cc|declared.anchor == depth.anchor|depth.anchor >= 0|runtime/policies/speed/prompt_depth_test.cc
predicted_fast|runtime/plan/prediction.cc|std::min(before + 1, positions)|before + 1 + 0 * positions|runtime/plan/prediction_test.cc
predicted_share|runtime/generate/report.cc|all > 0 ? fast / all : 0|0 * fast * all|runtime/plan/known_rates_test.cc
newest_pages|offload/kv/tiered_kv.cc|pages_.IsNewest(page, end_ + step_->rows)|false|runtime/policies/sadas/sadas_test.cc
newest_retired|offload/kv/staging.cc|step.pages.IsNewest(page, step.end)|step.pages.IsNewest(page, step.end + (1 << 30))|offload/kv/forks_test.cc
scored_rows|apps/commands/likelihood.cc|std::exp(log_p) \* (log_p - log_q)|std::exp(log_q) * (log_p - log_q)|apps/commands/likelihood_test.cc
sfi_gap|runtime/policies/sfi/sfi_schedule.cc|since_slow_ >= o.Gap()|since_slow_ > o.Gap()|runtime/policies/sfi/sfi_schedule_test.cc
sfi_sentences|runtime/policies/sfi/sfi_params.cc|form == PolicyForm::kPlain|form != PolicyForm::kPlain|apps/cli_policies_test.py
sfi_closer|runtime/policies/sfi/sfi_schedule.cc|kind != TokenKind::kWord) return false|kind == TokenKind::kBlank) return false|runtime/policies/sfi/sfi_schedule_test.cc
sfi_cooldown|runtime/policies/sfi/sfi_schedule.cc|cooldown_ == 0 \&\& kind|kind|runtime/policies/sfi/sfi_schedule_test.cc
sfi_evidence|runtime/session/draft_view.cc|sequence().kv_length() - first().evidence_rows()|sequence().kv_length() - 1|runtime/policies/sfi/sfi_test.cc
sfi_kept_row|runtime/pass/step.cc|.rows = layout.kv_heads,|.rows = 1,|runtime/policies/sfi/sfi_test.cc
sfi_norms|offload/retrieval/importance_selector.cc|scorer_->NormsOf(layer)|scorer_->NormsOf(layer / 2)|offload/retrieval/importance_selector_test.cc
sfi_one_row|offload/retrieval/importance_selector.cc|one ? kOfOneRow : 1.0f|one ? 1.0f : kOfOneRow|offload/retrieval/importance_selector_test.cc
sfi_decay|offload/retrieval/importance_selector.cc|row == 0 \&\& decay > 0.0f ?|decay > 0.0f ?|offload/retrieval/importance_selector_test.cc
sfi_newest|offload/retrieval/importance_selector.cc|Decays() ? seen : chunks|chunks + 0 * seen|offload/retrieval/importance_selector_test.cc
sfi_drafted|offload/retrieval/importance_selector.cc|importance = ImportanceWithDrafted()|importance = ImportanceOf(layer)|offload/retrieval/importance_selector_test.cc
sfi_drafted_first|offload/retrieval/importance_selector.cc|if (row == by.Certain() \&\& Decays())|if (row == by.Certain() + 1 \&\& Decays())|offload/retrieval/importance_selector_test.cc
sfi_drafted_rows|offload/retrieval/retrieval.cc|std::min(choice.drafted, step_rows_ - 1)|std::min(choice.drafted, int64_t{0})|runtime/policies/sfi/sfi_test.cc
sfi_drafted_all|offload/retrieval/retrieval.cc|std::min(choice.drafted, step_rows_ - 1)|choice.drafted > 0 ? step_rows_ - 1 : 0|runtime/policies/sfi/sfi_test.cc
sfi_drafted_plain|runtime/policies/sfi/sfi_params.cc|size.selection->drafted = 0;|(void)plain;|runtime/policies/sfi/sfi_test.cc
sfi_drafted_seen|offload/retrieval/importance_selector.cc|rows.q += (by.Certain() - 1)|rows.q += (by.rows - 1)|offload/retrieval/importance_selector_test.cc
sfi_prompt_rows|offload/retrieval/retrieval.cc|kept_ ? choice.queries : evidence_rows()|choice.queries|runtime/policies/sfi/sfi_test.cc
sfi_said_by|offload/retrieval/importance_selector.cc|Decays() ? by.Certain() : 0|Decays() ? 1 : 0|offload/retrieval/importance_selector_test.cc
sfi_forgets|offload/retrieval/importance_selector.cc|std::exchange(said_by_\[at\], 0)|said_by_[at]|offload/retrieval/importance_selector_test.cc
sfi_goes_on|offload/retrieval/retrieval.cc|.goes_on = kept_|.goes_on = false|runtime/policies/sfi/sfi_test.cc
sfi_anew|offload/retrieval/retrieval.cc|.goes_on = kept_|.goes_on = true|runtime/policies/sfi/sfi_test.cc
bench_first|apps/commands/bench_table.cc|seconds -= \*begun;|seconds -= 0;|apps/commands/bench_table_test.cc
bench_begun|apps/commands/bench_table.cc|std::max(begun.value_or(0), times.front())|times.front() - begun.value_or(0)|apps/commands/bench_table_test.cc
think_again|runtime/policies/sadas/think_schedule.cc|opens \&\& !thinking_|opens|runtime/policies/sadas/think_schedule_test.cc
plan_elsewhere|runtime/plan/session_plan.cc|!site.loaded|true|runtime/plan/plan_test.cc
sfi_reach|offload/retrieval/importance_selector.h|: 16 / chunk|: 16|offload/retrieval/importance_selector_test.cc
sfi_beside|offload/retrieval/importance_selector.h|(choice.beside + chunk - 1) / chunk|choice.beside / chunk|offload/retrieval/importance_selector_test.cc
sfi_mean_sinks|offload/retrieval/mean_scorer.cc|MeansOf(layer) + asked.first \* head_dim|MeansOf(layer)|offload/retrieval/importance_selector_test.cc
sfi_coverage_row|offload/retrieval/importance_selector.cc|row == by.Certain() - 1|row == 0|offload/retrieval/importance_selector_test.cc
digest_unshown|offload/retrieval/digests.cc|std::min(known, kv.end) / shape_.chunk|kv.end / shape_.chunk|offload/retrieval/digests_test.cc
fill_seed|runtime/pass/fill.cc|: random_(seed)|: random_(seed * 0)|runtime/session/fill_test.cc
fill_pending|runtime/generate/generate.cc|  if (session.sequence().pending() > 0) {|  if (session.sequence().pending() > 99) {|runtime/session/fill_test.cc
view_abandoned|offload/retrieval/retrieval.cc|  selector_->Truncate(step_end_);||runtime/session/fill_test.cc
view_queries|offload/retrieval/retrieval.cc|selection.has_value() ? 2 : 1) \* kMaxStepRows|selection.has_value() ? 1 : 1) * kMaxStepRows|runtime/policies/sfi/sfi_test.cc
fill_settled|runtime/session/sequence.cc|AddKv(rows, /\*as_prompt=\*/true)|AddKv(rows, /*as_prompt=*/false)|runtime/session/sequence_test.cc
sfi_forgotten|offload/retrieval/key_scorer.cc|known = std::min(known, end)|known = std::max(known, end)|offload/retrieval/importance_selector_test.cc
unnamed_sink|runtime/policies/policy_kind.cc|std::min(view->sink, view->budget)|view->sink|runtime/api/policy_api_test.cc
unnamed_sfi_sink|runtime/policies/sfi/sfi.cc|std::min(sfi.sink, sfi.budget)|sfi.sink|runtime/api/policy_api_test.cc
named_sink|runtime/policies/policy_kind.cc|if (request.sink != 0) {|if (request.sink < 0) {|runtime/api/policy_api_test.cc
negative_budget|runtime/policies/policy_kind.cc|std::max<int64_t>(1, std::min(view->sink, view->budget))|std::min(view->sink, view->budget)|runtime/api/policy_api_test.cc
view_sink|offload/retrieval/retrieval.cc|size.budget < size.sink|size.budget + size.chunk <= size.sink|runtime/policies/triforce/triforce_test.cc
measurement_age|runtime/api/session_api.cc|tiercel::WriteStruct(out, measurement)|*measurement = out|runtime/api/growth_test.cc
cancel_answered|runtime/api/session_calls.h|    session->session->cancellation().Clear();|    (void)session;|runtime/api/cancel_test.cc
message_stride|runtime/api/boundary.h|index \* stride|index * sizeof(T)|runtime/api/growth_test.cc
size_within_field|runtime/api/boundary.h| .. size % alignof(T) != 0||runtime/api/growth_test.cc
error_age|runtime/api/boundary.cc|struct_size >= kFirstErrorSize|struct_size == kFirstErrorSize|runtime/api/growth_test.cc
read_shared|runtime/api/session_calls.cc|ids + known, count - known|ids, count|runtime/api/api_test.cc
renewed_contents|offload/kv/page_table.cc|if (At(i).below) NoteContents(i);|if (At(i).contents == 0) NoteContents(i);|offload/kv/tiered_kv_test.cc
resent_page|offload/kv/residency.cc|  pages_.NoteContents(index);|  (void)index;|offload/kv/tiered_kv_test.cc
observer_view|offload/kv/kv_store.cc|view.IsFull() ? observer_ : nullptr|observer_|offload/kv/step_observer_test.cc
observer_resumed|offload/kv/kv_store.cc|step_rows_, /\*certain=\*/false|step_rows_, /*certain=*/true|offload/kv/step_observer_test.cc
stopped_twice|runtime/session/forward.cc|interrupted.Keep(\*std::move(last));|(void)last;|runtime/session/tiers_test.cc
staging_turn|offload/kv/kv_tier.h|(turn + layer) % 2|(turn + layer) / 2 % 2|offload/kv/kv_store_test.cc
copies_counted|offload/move/copy_engine.cc|transfer.bytes - (moved.ok()|0 * (moved.ok()|offload/move/copy_engine_test.cc
link_rate|offload/move/link.cc|static_cast<double>(moved.bytes) / rate_|static_cast<double>(moved.bytes) / rate_ / 2|offload/move/copy_engine_test.cc
link_latency|offload/move/link.cc|wire_->Occupy(since, latency_)|wire_->Occupy(since, 0)|offload/move/copy_engine_test.cc
link_idle|offload/move/link.cc|std::max(asked, free_at_) +|asked +|offload/move/copy_engine_test.cc
link_wire|runtime/machine/machine.cc|^ *wire_);|nullptr);|runtime/machine/machine_test.cc
link_direction|offload/move/copy_engine.cc|? use.h2d_bytes : use.d2h_bytes|? use.d2h_bytes : use.h2d_bytes|offload/move/copy_engine_test.cc
simulated_budget|kernels/device/sim/bounded_memory.cc|AlignedBytes(size) <= free()|free() >= 64|kernels/device/sim/bounded_memory_test.cc
predicted_pages|runtime/plan/prediction.cc|FullPages(before) - plan_.shape.resident_pages|FullPages(before)|runtime/plan/prediction_test.cc
predicted_up|runtime/plan/prediction.cc|layer.up_s = Up(before) +|layer.up_s = 0 * Up(before) +|runtime/plan/prediction_test.cc
schedule_cut|runtime/drafting/schedule_report.h|taken.back().at >= count|taken.back().at > count|runtime/policies/sfi/sfi_test.cc
schedule_swept|runtime/drafting/rounds.cc|session_.sequence().kv_length() > held|session_.sequence().kv_length() >= held|runtime/policies/sadas/sadas_test.cc
schedule_reasons|runtime/drafting/schedule_report.h|reason_at.resize(std::min(reason_at.size(), slow_at.size()))|reason_at.resize(reason_at.size())|runtime/policies/sfi/sfi_test.cc
first_gap|runtime/generate/report.cc|size_t i = 1; i < token_seconds|size_t i = 0; i < token_seconds|runtime/generate/report_test.cc
percentile_swap|runtime/generate/report.cc|Percentile(gap_ms, 0.90)|Percentile(gap_ms, 0.99)|runtime/generate/report_test.cc
percentile_rank|runtime/generate/report.cc|begin() + rank - 1|begin() + rank / 2|runtime/generate/report_test.cc
ranks_up|runtime/generate/report.cc|{"h2d_bytes", traffic.h2d_bytes},|{"h2d_bytes", traffic.d2h_bytes},|runtime/generate/report_test.cc
bench_deviation|apps/commands/bench_table.cc|(samples.size() - 1))|(samples.size()))|apps/commands/bench_table_test.cc
bench_first_gap|apps/commands/bench_table.cc|size_t i = 1; i < times|size_t i = 0; i < times|apps/commands/bench_table_test.cc
bench_positions|apps/commands/bench_table.cc|(row->n_gen + 1) / 2|(row->n_gen) / 2|apps/commands/bench_table_test.cc
bench_warned|apps/commands/bench.cc|said_.insert(warning).second|(said_.insert(warning), true)|apps/cli_bench_test.py
bench_warnings|apps/commands/bench_table.cc|warnings.end(), row.warnings.begin()|warnings.end(), row.warnings.end()|apps/commands/bench_table_test.cc
bench_unsteady|apps/commands/bench_table.cc|machine.at("steady").get<bool>()|true|apps/commands/bench_table_test.cc
read_spread|kernels/device/cpu/probe.cc|sorted\[sorted.size() / 2\] -|sorted.back() -|kernels/device/cpu/probe_test.cc
bench_share|apps/commands/bench_table.cc|\*row->bytes_per_token / peak|peak / *row->bytes_per_token|apps/commands/bench_table_test.cc
summary_share|apps/commands/summary.cc|level.value("checked", int64_t{0})|level.value("drafted", int64_t{0})|apps/commands/summary_test.cc
rank_bytes|runtime/generate/report.cc|all.ranks\[i\] : RankTraffic()|all.ranks[0] : RankTraffic()|runtime/generate/report_test.cc
ttft_prefill|runtime/generate/report.cc|prefill_s + token_seconds\[0\]|token_seconds[0]|runtime/generate/report_test.cc
prefill_cached|runtime/generate/report.cc|static_cast<double>(prefill.computed_tokens())|static_cast<double>(prefill.prompt_tokens)|runtime/generate/report_test.cc
phase_seconds|runtime/generate/report.cc|phase(Phase::kDraft, rounds.draft)|phase(Phase::kDraft, rounds.verify)|runtime/generate/report_test.cc
sweep_tokens|runtime/generate/report.cc|Ratio(gaps, static_cast<double>(sweeps))|Ratio(gaps + 1, static_cast<double>(sweeps))|runtime/generate/report_test.cc
predicted_unit|runtime/generate/report.cc|1e3 \* predicted->tbt_s|predicted->tbt_s|runtime/generate/report_test.cc
busy_share|runtime/generate/report.cc|Ratio(spent.link_seconds, spent.seconds)|Ratio(spent.seconds, spent.link_seconds)|runtime/generate/report_test.cc
sweeps_as_drafts|runtime/drafting/rounds.cc|decided - start - sweep|decided - start|runtime/generate/report_test.cc
first_sweep|runtime/generate/generate.cc|!first .. block.drafted > 0|!(first \&\& block.drafted < 99)|runtime/generate/speculation_test.cc
predicted_cached|runtime/generate/report.cc|{.cached = report->prefill.cached_tokens|{.cached = 0 * report->prefill.cached_tokens|runtime/plan/known_rates_test.cc
refresh_since|runtime/drafting/rounds.cc|session_.Elapsed() - decided;|session_.Elapsed() - start;|runtime/generate/report_test.cc
undelivered|runtime/generate/generate.cc|static_cast<size_t>(before - left)|block.tokens.size() + 0 * static_cast<size_t>(before - left)|runtime/generate/report_test.cc
stop_times|runtime/generate/generate.cc|report.token_seconds.resize(report.tokens.size());|;|runtime/generate/report_test.cc
sweep_untimed|runtime/drafting/rounds.cc|const absl::Cleanup spent = \[this, start = session_.Elapsed()\] {|const absl::Cleanup spent = [this, start = session_.Elapsed()] { return;|runtime/generate/report_test.cc
first_block_time|runtime/generate/generate.cc|times.push_back(seconds);|times.push_back(0);|runtime/generate/report_test.cc
draft_checked|drafts/drafter.h|checked += CheckedOf(all, held)|checked += all|drafts/verifying_drafter_test.cc
peak_best|kernels/device/cpu/probe.cc|std::min_element(seconds|std::max_element(seconds|kernels/device/cpu/probe_test.cc
peak_ops|kernels/device/cpu/probe.cc|steps \* 16 \* 2|steps * 16|kernels/device/cpu/probe_test.cc
machine_ops|runtime/machine/machine_json.cc|"int8_ops_per_s", peaks.int8|"int8_ops_per_s", peaks.f32|runtime/machine/machine_json_test.cc
prompt_traffic|runtime/generate/generate.cc|report.traffic -= before;|(void)before;|runtime/generate/report_test.cc
answer_traffic|runtime/generate/generate.cc|report.traffic -= traffic;|(void)traffic;|runtime/generate/report_test.cc
plan_parts|runtime/plan/plan.cc|{"staging", plan.staging}|{"staging", plan.workspace}|runtime/plan/plan_test.cc
largest_context|runtime/plan/session_plan.cc|too_large = most + 1|too_large = most|runtime/plan/plan_test.cc
unsteady_settles|runtime/plan/rates.h|return spread <= kMostSpread|return spread >= 0|runtime/plan/rates_cache_test.cc
noisier_kept|runtime/plan/rates_cache.cc|before->best.spread <= measured.spread|before->best.spread > measured.spread|runtime/plan/rates_cache_test.cc
others_cleared|runtime/plan/rates_cache.cc|digits.size() != 16|digits.size() > 16|runtime/plan/rates_cache_test.cc
costs_thawed|runtime/plan/rates_cache.cc|kept.costs = before->costs|(void)before->costs|runtime/drafting/draft_costs_test.cc
costs_of_today|runtime/api/session_api.cc|params.costs = rates->costs|params.costs = rates->best.rates|runtime/api/rates_api_test.cc
fork_rates|runtime/api/session_api.cc|std::move(draft), session->rates)|std::move(draft), std::nullopt)|runtime/api/rates_api_test.cc
constant_ratio|drafts/draft_length.h|kUsualRatio = 8|kUsualRatio = 10|drafts/draft_length_test.cc
block_length|runtime/policies/policy.h|kGamma2 = 16|kGamma2 = 15|runtime/drafting/draft_costs_test.cc
small_steps|runtime/drafting/draft_costs.cc|session_.model().BytesPerToken()) /|session_.model().BytesPerToken()) *|runtime/drafting/draft_costs_test.cc
residual_absolute|drafts/verdict.h|if (!(NumberOf<L>(0) < rest)) continue;|if (rest < NumberOf<L>(0)) rest = NumberOf<L>(0) - rest;|drafts/verdict_test.cc
replaced_from_target|drafts/verdict.h|ResidualOf(targets\[i\], drafts\[i\])|targets[i]|drafts/verify_test.cc
bonus_from_draft|drafts/verdict.h|chance.Draw(targets\[tokens.size()\]|chance.Draw(tokens.empty() ? targets[0] : drafts.back()|drafts/verdict_test.cc
bonus_place|drafts/verdict.h|chance.Draw(targets\[tokens.size()\]|chance.Draw(targets[tokens.empty() ? 0 : tokens.size() - 1]|drafts/verdict_test.cc
ratio_inverted|drafts/verdict.h|p < q ? p / q|q < p ? q / p|drafts/verdict_test.cc
accept_if_likelier|drafts/verdict.h|p < q ? p / q|p < q ? NumberOf<L>(0)|drafts/verdict_test.cc
accept_if_likeliest|drafts/verdict.h|return p < q ? p / q : NumberOf<L>(1)|(void)q; return NumberOf<L>(p == *std::max_element(target.probabilities.begin(), target.probabilities.end()))|drafts/verdict_test.cc
draft_sharpened|drafts/verify.cc|return tiercel::Draw(distribution, draw_|Distribution sharp = distribution; for (float\& p : sharp.probabilities) p = p * p; return tiercel::Draw(sharp, draw_|drafts/verifying_drafter_test.cc
draft_noise_accepts|drafts/verify.cc|accept_(key.SeedFor(Purpose::kAccept))|accept_(key.SeedFor(Purpose::kDraft))|drafts/verify_test.cc
replaced_from_draft|drafts/verdict.h|ResidualOf(targets\[i\], drafts\[i\])|drafts[i]|drafts/verdict_test.cc
residual_sign|drafts/verdict.h|rest = rest - drafted->second|rest = rest + drafted->second|drafts/verdict_test.cc
shared_noise|drafts/verify.cc|SeedFor(Purpose::kReplace)|SeedFor(Purpose::kAccept)|drafts/verify_test.cc
kept_too_much|runtime/drafting/model_target.h|Keep(before_ + count, next)|Keep(before_ + count + 1, next)|runtime/generate/speculation_test.cc
window_blocks|runtime/drafting/draft_window.cc|(beyond + recent - 1) / recent|beyond / recent|runtime/drafting/draft_window_test.cc
window_sinks|runtime/drafting/draft_window.cc|(window_.sink, begin)|(0, begin)|runtime/drafting/draft_window_test.cc
answer_of_drafts|runtime/drafting/draft_window.cc|left_out > 0 ? begin : 0|0|runtime/drafting/draft_window_test.cc
answer_drafted|runtime/drafting/model_target.cc|session.sequence().answer_begin()|0|runtime/drafting/answer_test.cc
answer_goes_on|runtime/session/sequence.cc|answer_begin_ = std::min(answer_begin_, length)|answer_begin_ = length|runtime/session/sequence_test.cc
answer_forked|runtime/session/session.cc|prompt_view_, sequence_, std::move(runner)|prompt_view_, [this] { Sequence s = sequence_; s.BeginAnswer(0); return s; }(), std::move(runner)|runtime/generate/speculation_test.cc
breaker_rest|runtime/generate/dry_breakers.cc|text.substr(length), Tok|text, Tok|runtime/generate/dry_breakers_test.cc
breakers_known|runtime/generate/dry_breakers.cc|texts != texts_|texts.size() != texts_.size()|runtime/generate/dry_breakers_test.cc
draft_distribution|runtime/drafting/proposer.cc|\*params.draft_session, drafts,|*params.draft_session, DistributionParams{.top_k = distribution.top_k},|runtime/drafting/draft_window_test.cc
nested_keys|drafts/verifying_drafter.cc|key.Within(key.start + size)|DrawKey{.seed = key.seed, .start = key.start + size}|runtime/policies/triforce/triforce_distribution_test.cc
certain_replacement|drafts/verdict.h|if (index < 0) return {i, chance.Draw(rest, i)};|if (index < 0) return {i, chance.Draw(targets[i], i)};|runtime/policies/triforce/triforce_distribution_test.cc
self_layers|runtime/drafting/proposer.cc|.layers = params.draft_layers|.layers = 0|runtime/policies/triforce/triforce_test.cc
draft_left|runtime/drafting/retrieval_kv.cc|  view.Truncate(end_);|;|runtime/policies/triforce/triforce_test.cc
stale_view|runtime/session/draft_view.cc|rank->retrieval->fresh();|rank->retrieval != nullptr;|runtime/policies/triforce/triforce_test.cc
lost_page|offload/kv/residency.cc|page.below = engine().Wait(page.down).ok() \&\& page.below|(void)engine().Wait(page.down)|offload/kv/forks_test.cc
lost_ahead|offload/kv/staging.cc|      IsThere(layer)) {|      layer < 0) {|offload/kv/tiered_kv_test.cc
slot_order|offload/kv/residency.cc|int64_t i = other->pages_.size() - 1; i >= 0; --i|int64_t i = 0; i < other->pages_.size(); ++i|offload/kv/forks_test.cc
slot_sharers|offload/kv/residency.cc|if (!sequence->HasSlot(i, slot)) continue;|if (sequence != other) continue;|offload/kv/forks_test.cc
slots_back|offload/kv/tiered_kv.cc|if (!step_->in_place) status = residency_.BringBack|if (false) status = residency_.BringBack|offload/kv/forks_test.cc
stopped_written|offload/kv/page_table.h|{ At(page).below = false; }|{ (void)page; }|offload/kv/forks_test.cc
step_layers|offload/kv/tiered_kv.cc|exists ? std::max(layers, written) : written|written|offload/kv/kv_store_test.cc
fork_page_kept|offload/kv/in_place_kv.cc|undo = \[this\] { AbandonOwn(); }|undo = [] {}|offload/kv/forks_test.cc
own_below|offload/kv/residency.cc|    page.below = false;|    (void)page;|offload/kv/forks_test.cc
cancelled_open|offload/kv/residency.cc|  if (ClassOf(sent) == ErrorClass::kCancelled) return sent;|  (void)sent;|offload/kv/tiered_kv_test.cc
resumed_buffers|offload/kv/staging.cc|^  ahead_ = {};  // the buffers|  // the buffers|offload/kv/forks_test.cc
rows_before|runtime/pass/pass.cc|pass_.before + first);|pass_.before);|runtime/pass/pass_test.cc
drafted_over|runtime/session/draft_view.cc|session_.kv().DropInterrupted();|(void)0;|runtime/policies/triforce/triforce_test.cc
draft_stops|runtime/policies/policy.cc|drafts->cancellation().Follow(session.cancellation());|(void)session;|runtime/drafting/draft_window_test.cc
draft_on_device|runtime/policies/policy.cc|.on_device = true|.on_device = false|runtime/drafting/draft_window_test.cc
reopened_slot|offload/kv/residency.cc|undo = \[&\] { Release(index); }|undo = [] {}|offload/kv/tiered_kv_test.cc
text_page|offload/prompt_cache/kv_file.cc|PageSum(bytes, page_bytes) != info_.sums\[sum\]|info_.sums[sum] == 0|offload/prompt_cache/kv_folder_test.cc
text_unfinished|offload/prompt_cache/kv_file.cc|return CheckCommit(commit, front);|return absl::OkStatus();|offload/prompt_cache/kv_folder_test.cc
text_front|offload/prompt_cache/kv_format.cc|return Damaged("its front does not have its checksum");||offload/prompt_cache/kv_format_test.cc
text_model|offload/prompt_cache/kv_folder.cc|if (info.fingerprint != fingerprint) continue;||offload/prompt_cache/kv_folder_test.cc
text_beginning|offload/prompt_cache/kv_folder.cc|if (common < kLeastTokens) continue;||offload/prompt_cache/kv_folder_test.cc
text_part|offload/prompt_cache/kv_folder.cc|disk_.Remove(folder.fd(), part.c_str());|(void)part;|offload/prompt_cache/kv_folder_test.cc
text_stalest|offload/prompt_cache/kv_folder.cc|a.used_ns < b.used_ns|a.used_ns > b.used_ns|offload/prompt_cache/kv_folder_test.cc
text_room|offload/prompt_cache/kv_folder.cc|RETURN_IF_ERROR(RemoveParts(folder, /\*surely=\*/true).status());|MakeRoom(folder, "", info);|offload/prompt_cache/kv_folder_test.cc
text_grown|offload/prompt_cache/kv_folder.cc|BeginsWith(folder, info, file.name)) {|true) {|offload/prompt_cache/kv_folder_test.cc
text_forked|offload/disk/process_files.cc|open) close(file);|open) (void)file;|offload/prompt_cache/prompt_file_test.cc
text_interrupted|offload/disk/disk_calls.cc|kMostTries = 1000|kMostTries = 1|offload/prompt_cache/kv_folder_test.cc
text_folder_sync|offload/disk/disk_calls.cc|return has_none ? 0 : synced|return has_none ? -1 : synced|offload/prompt_cache/kv_folder_test.cc
text_build|runtime/session/prompt_cache.cc|  if (build_.empty()) {|  if (false) {|runtime/session/prompt_cache_test.cc
prompt_records|offload/prompt_cache/prompt_file.cc|record.back() !=|0 ==|offload/prompt_cache/prompt_file_test.cc
prompt_states|offload/prompt_cache/prompt_file.cc|layer % kStates \*$|0 * layer *|offload/prompt_cache/prompt_file_test.cc
prompt_page|offload/prompt_cache/prompt_file.cc|!= records_\[layer\]\[kPageSumsAt + page\]|== 0|offload/prompt_cache/prompt_file_test.cc
prompt_lock|offload/prompt_cache/kv_folder.cc|if (TryLock(file) == Holder::kAnother) return nullptr;|(void)TryLock(file);|offload/prompt_cache/prompt_file_test.cc
prompt_evicted|offload/prompt_cache/kv_folder.cc|IsPrompt(file.name) \&\& HolderOf|IsPart(file.name) \&\& HolderOf|offload/prompt_cache/prompt_file_test.cc
prompt_counted|offload/prompt_cache/kv_folder.cc|if (busy) held -= file.bytes;||offload/prompt_cache/prompt_file_test.cc
prompt_served|offload/prompt_cache/prompt_file.h|return positions \* info.layers >= Saves();|return positions * info.layers >= 0;|offload/prompt_cache/prompt_file_test.cc
prompt_left_over|offload/prompt_cache/kv_folder.cc|other.starts_with(prompts) \&\& Serves(folder, info, file.name)|other.empty()|offload/prompt_cache/prompt_file_test.cc
prompt_head|offload/prompt_cache/prompt_file.cc|if (!looked.HasHead(head)) {|if (head.empty()) {|offload/prompt_cache/prompt_file_test.cc
prompt_taken|offload/prompt_cache/kv_folder.cc|HolderOf(\*\*folder, name) == Holder::kAnother|false|offload/prompt_cache/prompt_file_test.cc
prompt_no_states|offload/prompt_cache/prompt_file.cc|== kNoStates) continue;|== ~kNoStates) continue;|offload/prompt_cache/prompt_file_test.cc
prompt_even|offload/prompt_cache/prompt_file.cc|layers.size() % kStates == 0|layers.empty()|offload/prompt_cache/prompt_file_test.cc
prompt_together|runtime/session/prompt_writer.cc|return layer >= file_->layers();|return layer == file_->layers();|runtime/session/prompt_writer_test.cc
prompt_alone|runtime/api/batch_entry.cc|if (status.ok() \&\& cache != nullptr) cache->DropPrompt();|if (!status.ok() \&\& cache != nullptr) cache->DropPrompt();|runtime/api/prompt_cache_api_test.cc
held_later|offload/kv/tiered_kv.cc|std::any_of(step.sent.begin(), step.sent.end(), failed)|failed(step.sent.back())|offload/kv/layers_test.cc
no_locks|offload/prompt_cache/kv_folder.cc|errno == EWOULDBLOCK ? Holder::kAnother : Holder::kUnknown|Holder::kAnother|offload/prompt_cache/prompt_file_test.cc
no_locks_part|offload/prompt_cache/kv_folder.cc|(holder == Holder::kNobody .. !surely)|(surely ? true : true)|offload/prompt_cache/prompt_file_test.cc
prompt_at_fault|runtime/session/session_prompt_cache.cc|RefusePrompt(layers.status(), at_fault);|RefusePrompt(layers.status(), at_fault = true);|runtime/session/disk_pages_test.cc
text_at_fault|runtime/session/session_prompt_cache.cc|          taken = status.ok();|          taken = true;|runtime/session/ranks_test.cc
prompt_or_text|runtime/session/session_prompt_cache.cc|if (!prompt.has_value() .. prompt->IsServedBy(end)) return std::nullopt;|if (end > 0) return std::nullopt;|runtime/session/unfinished_prompt_test.cc
memory_or_text|runtime/session/session_prompt_cache.cc|return saves > end \* all_layers ? std::optional(before) : std::nullopt;|return saves > 0 ? std::optional(before) : std::nullopt;|runtime/session/unfinished_prompt_test.cc
short_read|offload/disk/page_reader.cc|.offset = buffer.offset + buffer.done,|.offset = buffer.offset,|offload/disk/page_reader_test.cc
damage_slot|offload/disk/page_file.cc|std::erase_if(damaged_, .*SlotOf(index) == slot; });|std::erase(damaged_, slot);|offload/disk/disk_kv_test.cc
ranks_serve|runtime/plan/session_plan.cc|LargestContext(sites, std::min(context, lacks->config.context))|lacks->LargestContext(std::min(context, lacks->config.context))|runtime/plan/session_plan_test.cc
disk_rate_first|runtime/plan/disk_rate.cc|if (rates.size() > 1) rates.erase(rates.begin());||runtime/plan/disk_rate_test.cc
huge_page|kernels/system/system_pages.cc|over == 0 ? 0 : kHugePage - over;|over == 0 ? 0 : 0;|offload/tier/host_region_test.cc
large_blocks|kernels/device/device_memory.cc|int64_t{64} << 10|int64_t{64} << 20|kernels/device/device_memory_test.cc
promised_free|runtime/machine/machine.cc|FreeHostMemory() - MemoryAccount::Unwritten()|FreeHostMemory()|runtime/machine/machine_test.cc
promised_in_place|runtime/plan/session_plan.cc|weights.bytes + (device.in_place() ? promised : 0)|weights.bytes|runtime/api/memory_api_test.cc
promised_kv|runtime/plan/session_plan.h|host_bytes - (device.in_place() ? 0 : promised_kv)|host_bytes|runtime/api/memory_api_test.cc
promised_slots|offload/tier/page_pool.cc|slots_in_use() >= promised_slots_|slots_in_use() > promised_slots_|offload/tier/memory_promise_test.cc
promise_written|offload/tier/memory_promise.h|bytes_ > written_ ? bytes_ - written_ : 0|bytes_ - written_|offload/tier/memory_promise_test.cc
pool_largest|runtime/model/workspace_pool.cc|idle_->Bytes() < workspace->Bytes()|idle_->Bytes() > workspace->Bytes()|runtime/model/workspace_pool_test.cc
rests_after_calls|runtime/api/session_calls.h|    session->session->runner().Rest();||runtime/api/memory_api_test.cc
rest_logits|runtime/session/runner.cc|if (keeps_row_) std::copy_n(HostLogits()|if (false) std::copy_n(HostLogits()|runtime/api/memory_api_test.cc
parked_states|runtime/session/runner_rank.cc|hidden_ = std::exchange(parked.states, {});|parked.states = {};|runtime/api/memory_api_test.cc
tiles_stay|runtime/session/runner_rank.cc|tiles_ != nullptr \&\& !tiles_->IsSuspended()|tiles_ != nullptr|runtime/session/tiers_test.cc
saving_makes_room|runtime/session/session_prompt_cache.cc|  cache_.GiveBack();||runtime/session/prompt_cache_test.cc
distribution_drafted|runtime/plan/session_plan.cc|(drafted + 4) \* kDistribution|4 * kDistribution|runtime/plan/block_distributions_test.cc
distribution_lengths|runtime/policies/policy_kind.cc|asked->Most() : ours|ours : ours|runtime/api/memory_api_test.cc
disk_slot|offload/disk/page_file.h|IndexOf(layer, slot)) \* page_bytes_|IndexOf(layer, slot / 2 * 2)) * page_bytes_|offload/disk/disk_kv_test.cc
disk_sum|offload/disk/page_file.cc|IndexOf(layer, slot))\] == sum) {|IndexOf(layer, slot))] != sum + 1) {|offload/disk/disk_kv_test.cc
disk_buffer|offload/move/disk_link.cc|  lane.asked.erase(lane.asked.begin());|  (void)lane;|offload/disk/disk_kv_test.cc
disk_early|offload/move/disk_link.cc|  while (!held.whole.has_value()) AwaitOne(lane);||offload/disk/disk_kv_test.cc
disk_part|offload/move/disk_link.cc|^                transfer.offset;|                0 * transfer.offset;|offload/disk/disk_kv_test.cc
disk_shared|offload/disk/page_file.cc|return open_ != nullptr .. slots_.IsShared(slot);|return open_ == nullptr \&\& slots_.IsShared(slot);|offload/disk/disk_kv_test.cc
disk_once|offload/move/disk_link.cc|    if (lane.last != nullptr \&\& lane.last->IsOfPage(t)) continue;||offload/disk/disk_kv_test.cc
disk_forgotten|runtime/session/forward.cc|^  ForgetDamaged();||runtime/session/disk_pages_test.cc
disk_removed|runtime/session/session_prompt_cache.cc|!opened_pages_->AnyDamaged()|opened_pages_->AnyDamaged()|runtime/session/disk_pages_test.cc
disk_place|offload/tier/tier_shape.h|page < std::min(disk_pages, resident_pages)|page < disk_pages|runtime/plan/tier_plan_test.cc
read_unannounced|offload/disk/page_reader.cc|disk_.Announce(request.file, request.offset, request.bytes);|disk_.Announce(request.file, request.offset, 1);|offload/disk/page_reader_test.cc
ring_drain|offload/disk/read_queue.cc|^    while (under_way_ > 0) {|    while (false) {|offload/disk/read_queue_test.cc
ring_left|offload/disk/page_reader.cc|if (buffers_\[i\].busy) Start(i);|if (buffers_[i].busy) { Start(i); Start(i); }|offload/disk/page_reader_test.cc
read_told|offload/disk/page_reader.cc|request.offset != next_|request.offset == next_|offload/disk/page_reader_test.cc
read_untold|offload/disk/page_reader.cc|request.bytes < kLongRead .. ||offload/disk/page_reader_test.cc
read_apart|offload/disk/page_reader.cc|place == next|place >= next|offload/disk/page_reader_test.cc
read_in_place|offload/disk/page_reader.cc|span.count \* runs.bytes, span.place|span.count * runs.bytes, all_have_places ? span.place : nullptr|offload/disk/page_reader_test.cc
load_in_place|offload/kv/in_place_kv.cc|return HostPage(layer, page)|return HostPage(layer, page / 2)|offload/kv/load_test.cc
held_page|offload/kv/held_slots.cc|at.AddReference(\*pool_);|(void)at;|offload/kv/load_test.cc
held_cells|offload/kv/held_pages.cc|ClearCells(static_cast<int>(end_ % kPageTokens)|ClearCells(kPageTokens|offload/kv/load_test.cc
loaded_resident|offload/kv/tiered_kv.cc|pages_.IsResident(page) .. pages_.IsNewest(page, end);|pages_.IsNewest(page, end);|offload/kv/load_test.cc
layer_lost|offload/kv/tiered_kv.cc|std::any_of(step.sent.begin(), step.sent.end(), failed)|std::any_of(step.sent.end(), step.sent.end(), failed)|offload/kv/layers_test.cc
layer_on_device|offload/kv/tiered_kv.cc|if (!pages_.OnDevice(page)) continue;|continue;|offload/kv/layers_test.cc
tile_reused|offload/kv/tiled_states.cc|if (tile.wanted) continue;|if (tile.wanted \&\& tile.filled == 0) continue;|offload/kv/tiled_states_test.cc
tile_neighbour|offload/kv/tiled_states.h|(&tile - tiles_.data()) \*|(\&tile - tiles_.data()) / 2 *|offload/kv/tiled_states_test.cc
tile_not_sent|offload/kv/tiled_states.cc|  if (sends) SendDown(\*place);|  if (sends) sent_.push_back(0);|offload/kv/tiled_states_test.cc
tile_emptied|offload/kv/tiled_states.cc|sends ? sent_.back() : 0|0|offload/kv/tiled_states_test.cc
tile_overlap|offload/kv/tiled_states.cc|tile.newer .. Overlap(tile.block, block)|tile.newer \&\& Overlap(block, tile.block) \&\& tile.block == block|offload/kv/tiled_states_test.cc
tile_lost|offload/kv/tiled_states.cc|    lost_.Update(arrived);||offload/kv/tiled_states_test.cc
tile_held|offload/kv/tiled_states.cc|  if (found_ == left_) {|  if (found_ == nullptr) {|offload/kv/tiled_states_test.cc
tile_spare|offload/kv/tiled_states.cc|spare_.use_count() == 1|spare_.use_count() > 0|offload/kv/tiled_states_test.cc
tile_turn|offload/kv/tiled_states.cc|CopyEngine::Turn::kUrgent|CopyEngine::Turn::kInOrder|offload/kv/tiled_states_test.cc
tile_ahead|runtime/pass/pass.cc|next->end() > now.row)|next->end() > now.end())|runtime/policies/speed/speed_test.cc
states_first|runtime/plan/tier_plan.cc|  if (everything.fits()) return everything;|  if (false \&\& everything.fits()) return everything;|runtime/plan/tier_plan_test.cc
states_below|runtime/plan/tier_plan.h|return host_kv + host_states|return host_kv|runtime/plan/session_plan_test.cc
states_predicted|runtime/plan/pipeline.cc|    link.Copy(now, layer.states_s);||runtime/plan/pipeline_test.cc
layers_skipped|offload/kv/staging.cc|steps_.front()->done = layer;|steps_.front()->done = layer * 0;|offload/kv/layers_test.cc
prompt_refused|runtime/session/forward.cc|refused = refused .. !progress(done, total);|refused = !progress(done, total);|runtime/session/unfinished_prompt_test.cc
kept_states|runtime/plan/tier_plan.cc|plan.host_states = needs.kept_states;||runtime/plan/tier_plan_test.cc
states_on_card|runtime/plan/tier_plan.cc|  plan.host_states = 0;||runtime/plan/session_plan_test.cc
parts_between|apps/reader/selection.cc|(section.level >= level_ .. chapters_.contains(i))|section.level >= level_|apps/reader/selection_test.cc
page_dashes|apps/reader/selection.cc|!dashes \&\& item|dashes \&\& item|apps/reader/selection_test.cc
stdin_named|apps/cli/check_together.cc|named.st_ino == typed.st_ino|false|apps/cli_chat_test.py
no_ring|bench/no_ring.py|^    refuse_rings()$|    pass|bench/prompt_cache_test.py
deaf_peer|bench/llama_server.py|            self.__exit__()||bench/prompt_cache_test.py
part_request|apps/commands/part_maker.cc|if (!options_.session.prompt_cache_dir.empty()) {|if (false) {|apps/cli_saved_test.py
interrupted_anew|apps/commands/generation.cc|session.KeptLayers() > 0 \&\& goes_on|session.KeptLayers() > 0|apps/cli_saved_test.py
shorter_again|apps/commands/tree.cc|AnswerWith(static_cast<size_t>(tokens / 2));|AnswerWith(static_cast<size_t>(tokens / 3));|apps/cli_book_test.py
talk_failed|apps/commands/follow_up.cc|    failed_.Update(status);||apps/cli_chat_test.py
leaf_heading|apps/commands/book_summary.cc|headings\[end\] == headings\[begin\]|headings[end].empty()|apps/cli_book_test.py
going_on_said|apps/commands/generation.cc|"going on at layer ", resumed + 1|"going on at layer ", resumed|apps/cli_saved_test.py
prompt_again|runtime/session/runner.cc|if (point.layer > 0 \&\& point.row == 0) {|if (false) {|runtime/session/unfinished_prompt_test.cc
prompt_anew|runtime/session/prompt_cache.cc|begins_anew_);|false);|runtime/session/unfinished_prompt_test.cc
prompt_filled|runtime/session/session_prompt_cache.cc|sequence_.IsSettled() \&\& sequence_.IsComputed();|sequence_.IsSettled();|runtime/session/unfinished_prompt_test.cc
prompt_left|runtime/session/prompt_cache.cc|writing.prompt_name = writing.prompt->file().name();||runtime/session/unfinished_prompt_test.cc
prompt_unseen|offload/retrieval/retrieval.cc|(InSteps() \&\& step_rows_ <= kMaxStepRows)|InSteps()|runtime/session/unfinished_prompt_test.cc
text_filled|runtime/session/session_prompt_cache.cc|const bool computed = sequence_.IsSettled() \&\& sequence_.IsComputed()|const bool computed = sequence_.IsSettled()|runtime/session/prompt_cache_test.cc
text_shallow|runtime/plan/session_plan.h|prompt_view.IsFull() \&\& !EndsPrompts() \&\&|prompt_view.IsFull() \&\&|runtime/session/prompt_cache_test.cc
text_stopped|runtime/session/session_prompt_cache.cc|if (!cache_.Settle()) saved_ = 0;||runtime/session/prompt_cache_test.cc
text_checkpoint|runtime/session/prompt_cache.cc|"checkpoint", checkpoint|"checkpoint", ""|runtime/session/prompt_cache_test.cc
callers_modes|runtime/api/callers_thread.cc|std::fesetenv(FE_DFL_ENV)|(void)FE_DFL_ENV|runtime/api/caller_test.cc
original_context|runtime/model/model.cc|scaling.original_context = \*options.yarn_orig_ctx|(void)*options.yarn_orig_ctx|runtime/model/model_test.cc
ended_thread|runtime/api/boundary.h|throw;  // by a callback.*|return TIERCEL_FAILED;|runtime/api/callbacks_test.cc
file_size_signal|runtime/api/callers_thread.cc|SIG_BLOCK|SIG_UNBLOCK|runtime/api/host_signals_test.cc
file_size_pending|runtime/api/callers_thread.cc|if (!signal_was_pending_)|if (signal_was_pending_)|runtime/api/host_signals_test.cc
session_turn|runtime/api/turns.cc|holder_ == self)) return false;|holder_ == self)) return true;|runtime/api/lives_test.cc
freed_in_call|runtime/api/turns.cc|if (taken_ .. HasQueue()) {|if (HasQueue()) {|runtime/api/lives_test.cc
draft_model_freed|runtime/api/session_api.cc|request.draft_model,|nullptr,|runtime/api/lives_test.cc
cancelled_thread|runtime/api/callers_thread.cc|PTHREAD_CANCEL_DISABLE|PTHREAD_CANCEL_ENABLE|runtime/api/callbacks_test.cc
callbacks_modes|runtime/api/callers_thread.h|~Outside() { thread_.Enter(); }|~Outside() {}|runtime/api/callbacks_test.cc
forked_session|runtime/api/session_calls.cc|session->process != getpid()|session == nullptr|runtime/api/caller_test.cc
llama3_rope|models/decoder/rope_frequencies.cc|wavelength > context / scaling.low|wavelength > context / scaling.high|models/decoder/rope_frequencies_test.cc
chat_origin|models/chat/chat_tokens.cc|piece.from_message|!piece.from_message|runtime/api/model_api_test.cc
gguf_padding|models/format/gguf.cc|next = CheckedAlignUp(\*next, alignment)|next = CheckedAlignUp(*next, 32)|models/format/gguf_test.cc
gguf_one_of_one|models/format/gguf_set.cc|count->value_or(0) > 1|count->value_or(0) > 0|models/format/gguf_set_test.cc
failed_encode|models/tokenizer/tokenizer.cc|ids->resize(before)|(void)before|models/tokenizer/tokenizer_test.cc
end_spelling|models/tokenizer/tokenizer.cc|IsEndSpelling(token.text))) {|token.text.empty())) {|models/chat/chat_tokens_test.cc
end_of_part|models/tokenizer/tokenizer.cc|has_parts && token.text|!has_parts \&\& token.text|models/chat/chat_tokens_test.cc
end_word_is_control|models/tokenizer/tokenizer.cc|IsIn(kEndSpellings, token.text)) {|token.text.empty()) {|models/chat/chat_tokens_test.cc
end_of_template|models/chat/chat_tokens.cc|return (\*pieces)\[i + 1\].text;|return "";|models/chat/chat_tokens_test.cc
end_behind_space|models/chat/chat_tokens.cc|absl::StripAsciiWhitespace(piece).empty()|piece.empty()|models/chat/chat_tokens_test.cc
stop_is_token|runtime/generate/generate.cc|if (id.has_value()) ends.push_back(\*id);||apps/cli_files_test.py
stop_ids|runtime/generate/generate.cc|std::vector<int32_t> ends = params.stop_ids;|std::vector<int32_t> ends;|runtime/api/api_test.cc
null_bos|models/tokenizer/hf_spec.cc|if (!spec->bos \&\& !bos.is_said) {|if (!spec->bos) {|models/tokenizer/hf_spec_test.cc
map_before_config|models/tokenizer/hf_settings.cc|merged_.contains("added_tokens_decoder")|!merged_.is_null()|models/tokenizer/hf_spec_test.cc
side_token_id|models/tokenizer/hf_spec.cc|token\["id"\] = known->second;||models/tokenizer/hf_spec_test.cc
piece_score|models/tokenizer/sentence_piece_spec.cc|if (field->number == 2) {|if (field->number == 5) {|models/tokenizer/sentence_piece_spec_test.cc
lfs_pointer|models/format/file.cc|if (start != kStart) return absl::OkStatus();|return absl::OkStatus();|models/format/safetensors_test.cc
fused_rows|models/decoder/row_reader.cc|static_cast<uint64_t>(from.first + begin)|static_cast<uint64_t>(begin)|models/decoder/weights_test.cc
fused_bias|models/decoder/weights.cc|RowBytes(type, from.first)|RowBytes(type, 0)|models/decoder/weights_test.cc
window_layers|models/decoder/config_hf.cc|without < config.layers|without <= config.layers|models/decoder/config_test.cc
never_drawn|kernels/token/distribution.cc|logits\[id\] = std::numeric_limits<float>::lowest();||kernels/token/distribution_test.cc
draft_reads_shared|runtime/drafting/draft_window.cc|id = shared_.ReadFor(id);|(void)id;|runtime/drafting/draft_window_test.cc
draft_padding|runtime/model/draft_model.cc|if (!we_use \&\& !it_uses) continue;||runtime/drafting/draft_window_test.cc
word_without_row|runtime/model/model.cc|if (!word.has_value()) return absl::OkStatus();|return absl::OkStatus();|apps/cli_test.py
described|runtime/model/model.cc|if (cannot_run.empty()) cannot_run = std::string(status.message());||apps/cli_files_test.py
alias_merges|models/tokenizer/gguf_spec.cc|spec->ignore_merges = pre->ignore_merges;|spec->ignore_merges = true;|models/tokenizer/gguf_spec_test.cc
percent_left|lib/template/printf.cc|if (rendering.ok()) given.End();||models/chat/chat_template_test.cc
final_sigma|lib/template/letter_case.cc|if (own == Case::kLower && c.code_point == 0x3A3|if (own == Case::kLower \&\& c.code_point == 0|models/chat/chat_template_test.cc
case_origin|lib/template/letter_case.cc|out.Append(mapped, text.OriginAt(begin));|out.Append(mapped);|models/chat/chat_template_test.cc
macro_kwargs|lib/template/interpreter.cc|scope_->Set("kwargs", |scope_->Set("varargs", |models/chat/chat_template_test.cc
loop_depth|lib/template/interpreter.cc|outer.lock(), more, depth + 1)|outer.lock(), more, depth)|models/chat/chat_template_test.cc
batch_fill|lib/template/list_filters.cc|IsGiven(bound\[1\]) \&\& batch.size() < size|batch.size() > size|models/chat/chat_template_test.cc
padded_scale|kernels/kv/kv_layout.h|head_elements > 0 ? head_elements|head_elements < 0 ? head_elements|apps/cli_files_test.py
padded_rows|models/decoder/row_reader.cc|return head \* config_.head_dim + in_head;|return file_row;|apps/cli_files_test.py
padded_norm|models/decoder/weights.h|return config.norm_eps \* PaddedShare(config);|return 0.5f;|apps/cli_files_test.py
padded_blocks|models/decoder/row_reader.cc|Dequantize(tensor.type, row, cols, values.data());||apps/cli_files_test.py
longest_special|models/tokenizer/special_matcher.cc|if (++low == high) break;|break;|models/tokenizer/special_matcher_test.cc
gap_before_match|models/tokenizer/pretokenize.cc|(match.begin > from ? match.begin|(match.begin < from ? match.begin|models/tokenizer/pretokenize_test.cc
piece_of_step|models/tokenizer/pretokenize.cc|^    around = piece;||models/tokenizer/pretokenize_test.cc
stray_symbol|models/tokenizer/pretokenize.cc|clean\[at\] = '.x01'|clean[at] = ' '|models/tokenizer/pretokenize_test.cc
dropped_text|models/tokenizer/pretokenize.cc|match.begin > from \&\& step.is_all|false|models/tokenizer/pretokenize_test.cc
empty_match|models/tokenizer/pretokenize.cc|if (match.begin != from .. match.end != from) return match;|return match;|models/tokenizer/pretokenize_test.cc
regex_steps|models/tokenizer/regex.cc|onig_set_retry_limit_in_match_of_match_param(param, steps);|onig_set_retry_limit_in_match_of_match_param(param, 0);|models/tokenizer/pretokenize_test.cc
upper_words|models/tokenizer/gguf_pres.cc|upper, "+", lower, "\*", suffix|upper, "+", lower, "+", suffix|models/tokenizer/pretokenize_test.cc
inverted_split|models/tokenizer/hf_pipeline.cc|/\*is_all=\*/true|/*is_all=*/false|models/tokenizer/hf_spec_test.cc
behind_bytes|models/tokenizer/hf_pipeline.cc|    is_spelled = true;|    is_spelled = spec->cuts.empty();|models/tokenizer/hf_spec_test.cc
composed_mark|models/tokenizer/token_splitter.cc|token.normalized \&\& Composes|!token.normalized \&\& Composes|models/tokenizer/tokenizer_test.cc
prepended_token|models/tokenizer/hf_spec.cc|spec.space_prefix == TokenizerSpec::SpacePrefix::kNone \&\&|true \&\&|models/tokenizer/hf_spec_test.cc
spaced_token|models/tokenizer/hf_spec.cc|text.find(. .) == std::string_view::npos;|true;|models/tokenizer/hf_spec_test.cc
single_word|models/tokenizer/token_splitter.cc|if (token.single_word \&\&|if (false \&\& token.single_word \&\&|models/tokenizer/tokenizer_test.cc
single_word_composed|models/tokenizer/token_splitter.cc|EndsInWord(before, composed)|EndsInWord(before, composed \&\& false)|models/tokenizer/tokenizer_test.cc
single_word_parts|models/tokenizer/token_splitter.cc|before = texts\[i - 1\].text;|break;|models/tokenizer/tokenizer_test.cc
single_word_read|models/tokenizer/hf_spec.cc|IsTrue(Member(token, "single_word"));|false;|models/tokenizer/hf_spec_test.cc
fused_named|models/decoder/tensor_finder.cc|nor = absl::StrCat(", nor in "|absl::StrCat(", nor in "|models/decoder/weights_test.cc
no_dense_layer|models/decoder/config_hf.cc|if (!layer.is_number_integer()) {|if (!layer.is_number_integer() or layer < 0) {|models/decoder/families_test.cc
own_output|models/decoder/config_hf.cc|memcmp(of_a.data(), of_b.data(), count) != 0|memcmp(of_a.data(), of_b.data(), count) > 0|models/decoder/weights_test.cc
unsaid_biases|models/decoder/weights.cc|if (!may_have_bias) continue;|(void)may_have_bias;|models/decoder/weights_test.cc
unsaid_norms|models/decoder/config_hf.cc|.head_norms = traits.norms_heads|.head_norms = traits.norms_heads or true|models/decoder/weights_test.cc
broken_tokenizer|models/tokenizer/tokenizer.cc|    if (needed) return why;|    if (needed and false) return why;|apps/cli_files_test.py
broken_side_file|models/format/safetensors_directory.cc|unread_files_.emplace(name, content.status());||models/format/safetensors_test.cc
missing_told|models/format/checkpoint.cc|  missing_.Update(error);||models/format/safetensors_test.cc
missing_pointer|models/format/checkpoint.cc|? CodeOf(error) != "git_lfs_pointer"|? true|models/format/gguf_set_test.cc
space_suffix|models/tokenizer/sentence_piece_spec.cc|field->number == 24|field->number == 64|models/tokenizer/sentence_piece_spec_test.cc
python_number|models/format/json.cc|at += text\[at\] == .*? 2 : 1;|++at;|models/format/json_test.cc
python_key|models/format/json.cc|next != text.npos \&\& text\[next\] == .:.;|next > text.size() + 1;|models/format/json_test.cc
no_decoder|models/tokenizer/hf_pipeline.cc|\&\& !IsType(\*stage, "Fuse")) {|) {|models/tokenizer/hf_spec_test.cc
bad_bos|models/tokenizer/gguf_spec.cc|if (metadata.Has(kBos) \&\& !spec->bos.has_value())|if (false)|models/tokenizer/gguf_spec_test.cc
bad_end|models/decoder/config_hf.cc|id < config->vocab)|id <= config->vocab)|models/decoder/config_test.cc
inner_context|models/decoder/config_hf.cc|const int64_t original = family.original_context > 0|const int64_t original = !inner \&\& family.original_context > 0|models/decoder/families_test.cc
family_context|models/decoder/families.cc|.context = 262144|.context = 131072|models/decoder/families_test.cc
family_ffn|models/decoder/families.cc|.ffn = 6144|.ffn = 1024|models/decoder/families_test.cc
strips_left|models/tokenizer/token_splitter.cc|if (token.strips_left) StripEnd();||models/tokenizer/tokenizer_test.cc
strips_right|models/tokenizer/token_splitter.cc|strips_ = token.strips_right;|strips_ = false;|models/tokenizer/tokenizer_test.cc
one_pass|models/tokenizer/token_splitter.cc|if (token.normalized != normalized) continue;|if (normalized) continue;|models/tokenizer/tokenizer_test.cc
strips_once|models/tokenizer/token_splitter.cc|    while (strips_ \&\& !text.empty()) {|    if (strips_ \&\& !text.empty()) {|models/tokenizer/tokenizer_test.cc
phi3_ends|models/tokenizer/gguf_spec.cc|token.text != "<s>"|!token.text.empty()|models/tokenizer/gguf_spec_test.cc
half_vocab|models/tokenizer/hf_spec.cc|vocab    ? "vocab.json without|merges ? "vocab.json without|models/tokenizer/hf_spec_test.cc
vain_think|apps/commands/command.cc|otherwise.ok() \&\& .as_asked == .otherwise|otherwise.ok() \&\& as_asked->empty()|apps/cli_think_test.py
thoughts_alone|apps/commands/book_summary.cc|cut = cut .. (text.empty() \&\& summary_.cut + summary_.unanswered > 0);||apps/cli_think_test.py
unanswered_parts|apps/commands/tree.cc|if (made.in_thought) ++summary_.unanswered;||apps/cli_think_test.py
thought_of_part|apps/commands/part_maker.cc|lines.waiting.back()\["reasoning"\] = thought;|(void)0;|apps/cli_think_test.py
gemma_merges|models/tokenizer/gguf_spec.cc|  } else if (.model == kGemma4) {|  } else if (false) {|models/tokenizer/gguf_spec_test.cc
first_space|models/tokenizer/stream_decoder.cc|  first_ = false;|  (void)first_;|models/tokenizer/stream_decoder_test.cc
equal_scores|models/tokenizer/sentence_piece.cc|i > 0 \&\& score(normal\[i\]) != score(normal\[i - 1\])|i > 0|models/tokenizer/tokenizer_test.cc
chat_at_most|lib/template/tests.cc|IsEqual(rendering, value, args) .. IsBelow(rendering, value, args)|IsBelow(rendering, value, args)|models/chat/chat_template_test.cc
chat_sum|lib/template/list_filters.cc|terms.push_back(bound\[1\])|(void)bound|models/chat/chat_template_test.cc
chat_loop|lib/template/attributes.cc|return length - index - 1|return length - index|models/chat/chat_template_test.cc
yarn_attention|models/decoder/rope_frequencies.cc|std::log(factor) + 1|std::log(factor)|models/decoder/rope_frequencies_test.cc
yarn_context|models/decoder/config.cc|std::max(config->context|std::min(config->context|models/decoder/config_test.cc
penalty_window|kernels/token/distribution.h|kRepeatWindow = 256|kRepeatWindow = 63|kernels/token/distribution_test.cc
min_p_equals|kernels/token/distribution_cut.cc|w < least) break|w <= least) break|kernels/token/distribution_test.cc
planned_views|runtime/plan/tier_plan.h|staging + views + resident|staging + resident|runtime/plan/tier_plan_test.cc
planned_in_place|runtime/plan/tier_plan.h|(in_place ? HostBytes() : 0)|0|runtime/plan/tier_plan_test.cc
pipeline_ahead|runtime/plan/pipeline.cc|l + 2 < layers|l + 1 < layers|runtime/plan/pipeline_test.cc
length_memory|drafts/draft_length.cc|kMemory = 0.9|kMemory = 0.99|drafts/draft_length_test.cc
ngram_latest|drafts/ngram.cc|length > best_length|length >= best_length|drafts/ngram_test.cc
gamma1|drafts/verifying_drafter.cc|static_cast<int64_t>(round.accepted)|static_cast<int64_t>(round.drafted)|drafts/verifying_drafter_test.cc
outer_length|runtime/drafting/rounds.cc|static_cast<int64_t>(block->accepted))|static_cast<int64_t>(block->drafted))|runtime/policies/nested_drafting_test.cc
end_of_text|runtime/generate/generate.cc|^  if (!params.ignore_eos) {|  if (false) {|runtime/policies/nested_drafting_test.cc
after_the_end|runtime/generate/generate.cc|session.Truncate(static_cast<size_t>(prompt) + transcript.tokens().size())|(void)prompt|runtime/policies/nested_drafting_test.cc
view_distribution|runtime/policies/policy_parts.cc|return {session, DraftDistribution(distribution),|return {session, DistributionParams{.temperature = distribution.temperature},|runtime/policies/nested_drafting_test.cc
stop_tie|runtime/generate/stop_matcher.cc|at_end == end \&\& at < begin|at_end == end \&\& at > begin|runtime/generate/stop_matcher_test.cc
stop_longest|runtime/generate/stop_matcher.cc|hold = std::max(hold, n)|hold = n|runtime/generate/stop_matcher_test.cc
bytes_over_calls|runtime/generate/generate.cc|GoOnBehind(session.sequence().tokens(),|GoOnBehind({},|runtime/api/continued_text_api_test.cc
space_over_calls|runtime/api/batch_entry.cc|session->text_begin < session->session->sequence().tokens().size();|false;|runtime/api/continued_text_api_test.cc
measured_again|runtime/plan/rates.cc|next <= left; ++attempt|true; ++attempt|runtime/plan/rates_test.cc
measured_job|apps/commands/command.cc|measurement = measure(seconds)|measurement = measure(60)|apps/cli_rates_test.py
crowded_view|runtime/plan/session_plan.cc|if (room >= most) return "";|return "";|apps/cli_policies_test.py
sadas_thinks|runtime/policies/sadas/sadas.cc|tags->open.size() == 1|tags->open.size() >= 1|apps/cli_policies_test.py
sweep_of_drafts|runtime/policies/policy_times.cc|length + drafts + 1|length + 1|runtime/policies/policy_times_test.cc
plain_distribution|apps/commands/sampling.cc|if (from.plain) return Promise::kNone;||apps/cli_policies_test.py
after_refusal|runtime/generate/transcript.cc|(!whole \&\& !cut) .. refused_|!whole \&\& !cut|runtime/generate/transcript_test.cc
seed_range|apps/cli/numbers.cc|\*first > \*last|*first >= *last|apps/cli/numbers_test.cc
cut_unit|lib/documents/encoding.cc|"UTF-16", 0) == 0) unit_ = 2|"UTF-16", 0) == 0) unit_ = 1|lib/documents/encoding_test.cc
few_bytes|lib/documents/encoding.cc|kFewBytes = 4|kFewBytes = 400|lib/documents/encoding_test.cc
html_no_text|lib/documents/html_element.cc|case GUMBO_TAG_CANVAS:|case GUMBO_TAG_RUBY:|lib/documents/html_test.cc
binary_share|lib/documents/page.cc|bytes.size() / 100|bytes.size() / 10|lib/documents/document_test.cc
html_limit|lib/documents/page.cc|html.size() > kMaxHtmlBytes|html.size() > kMaxFileBytes|lib/documents/document_test.cc
place_of_mark|lib/documents/text_writer.cc|marks_\[num_placed_\] = text_.size()|marks_[num_placed_] = text_.size() + 1|lib/documents/html_test.cc
roman_form|lib/documents/labels.cc|RomanOf(value) != text_.substr(begin, at_ - begin)|RomanOf(value).empty()|lib/documents/labels_test.cc
initials|lib/documents/labels.cc|scanner.at() == 1 \&\& number > 10|number > 1000|lib/documents/labels_test.cc
section_level|lib/documents/outline.cc|open.back() >= heading.level|open.back() > heading.level|lib/documents/html_test.cc
contents_lines|lib/documents/numbered_headings.cc|if (i >= contents.first_line \&\& i < contents.end_line) continue;||lib/documents/plain_text_test.cc
listed_chapters|lib/documents/numbered_headings.cc|const bool comes_again = last\[KeyOf(here)\] > i|const bool comes_again = false|lib/documents/plain_text_test.cc
frame_end|lib/documents/gutenberg.cc|document->text.substr(begin, end - begin)|document->text.substr(begin)|lib/documents/plain_text_test.cc
zip_ratio|lib/documents/zip_archive.cc|info.size > kMinZipBombBytes|info.size > kMaxUnpackedBytes|lib/documents/epub_test.cc
zip_names|lib/documents/zip_archive.cc|name.substr(begin, end - begin) == ".."|name == ".."|lib/documents/epub_test.cc
bound_place|lib/documents/book_binder.cc|heading.begin += begin;||lib/documents/folder_test.cc
epub_pictures|lib/documents/epub.cc|; error.has_value()|; error.has_value() \&\& false|lib/documents/epub_test.cc
epub_twice|lib/documents/epub.cc|a.level == b.level \&\& a.text == b.text|a.level == b.level \&\& a.text < b.text|lib/documents/epub_test.cc
fonts_alone|lib/documents/epub_package.cc|if (LocalName(node) != "EncryptedData") continue;|continue;|lib/documents/epub_test.cc
outside_folder|lib/documents/folder.cc|return ends.first == root_.end();|return ends.first != root_.begin();|lib/documents/folder_test.cc
child_memory|lib/documents/child_process.cc|Limit(RLIMIT_AS, limits.memory_bytes, limits.memory_bytes);||lib/documents/child_process_test.cc
child_unseen|lib/documents/child_process.cc|kind = ChildEnd::Kind::kUnseen|kind = ChildEnd::Kind::kTimedOut|lib/documents/child_process_test.cc
pdf_unseen|lib/documents/pdf.cc|if (whole) return|if (int{whole} >= 0) return|lib/documents/pdf_test.cc
child_descriptors|lib/documents/child_process.cc|close_range(STDERR_FILENO + 1, ~0U, 0) != 0|false|lib/documents/child_process_test.cc
label_above|lib/documents/pdf_sections.cc|\&\& split.title.empty()) continue;|\&\& false) continue;|lib/documents/pdf_test.cc
running_heads|lib/documents/pdf_margins.cc|return count >= kMinPages;|return count > 100;|lib/documents/pdf_test.cc
kept_hyphen|lib/documents/pdf_text.cc|words_.count(first + "-" + second) > 0|words_.empty()|lib/documents/pdf_test.cc
meant_break|lib/documents/pdf_text.cc|0.3F \* SizeOf(line) < right|0.3F * SizeOf(line) < right - 300|lib/documents/pdf_test.cc
page_label|lib/documents/pdf_sections.cc|section.label.empty()) TakeLabelAbove|section.label == "x") TakeLabelAbove|lib/documents/pdf_test.cc
zip_most|lib/documents/zip_archive.cc|info.size > most|false|lib/documents/zip_archive_test.cc
zip_total|lib/documents/zip_archive.cc|  unpacked_bytes_ += bytes.size();||lib/documents/zip_archive_test.cc
zip_shown|lib/documents/zip_archive.cc|  ReplaceControls(.shown);||lib/documents/zip_archive_test.cc
child_orphan|lib/documents/child_process.cc|  prctl(PR_SET_PDEATHSIG, SIGKILL);||lib/documents/child_process_test.cc
child_signals|lib/documents/child_process.cc|ready < 0 \&\& errno != EINTR) break|ready < 0) break|lib/documents/child_process_test.cc
child_wait|lib/documents/child_process.cc|(ready < 0 \&\& errno != EINTR)) return|ready < 0) return|lib/documents/child_process_test.cc
child_deadline|lib/documents/child_process.cc|Clock::now() >= deadline .. (ready|(ready|lib/documents/child_process_test.cc
child_folder|lib/documents/child_process.cc|folder.substr(0, 1) != "/"|folder.empty()|lib/documents/child_process_test.cc
child_mask|lib/documents/child_process.cc|  sigprocmask(SIG_SETMASK.*||lib/documents/child_process_test.cc
child_pipe|lib/documents/child_process.cc|  signal(SIGPIPE, SIG_DFL);||lib/documents/child_process_test.cc
child_core|lib/documents/child_process.cc|  Limit(RLIMIT_CORE, 0, 0);||lib/documents/child_process_test.cc
two_byte_leads|lib/documents/encoding.cc|lead <= 0xDF|lead <= 0xDE|lib/documents/encoding_test.cc
swapped_letters|apps/cli/suggestion.cc|a\[i - 2\] == b\[j - 1\]|a[i - 2] == b[j - 2]|apps/cli/suggestion_test.cc
help_width|apps/cli/help.cc|word.size() > kColumns|word.size() > kColumns + 30|apps/cli/help_test.cc
thousand_tokens|apps/cli/numbers.cc|kThousand = 1024|kThousand = 1000|apps/cli/numbers_test.cc
lost_penalty|apps/commands/sampling.cc|static_cast<float>(from.repeat_penalty)|1.0f|apps/commands/sampling_test.cc
values_type|apps/commands/command.cc|session.kv_type_v = from.kv_type_v|session.kv_type_v = from.kv_type_k|apps/commands/command_test.cc
sinks_seen|runtime/policies/full/full.cc|size.budget = size.sink;|size.budget = size.sink + 1;|runtime/policies/triforce/triforce_test.cc
plain_checks|apps/cli/check_together.cc|return sampling.plain ?|return false ?|apps/cli/check_together_test.cc
isa_ignored|apps/cli/args.cc|tiercel_check_environment(.error) == TIERCEL_OK|true|apps/cli/args_test.cc
stray_file|apps/cli/flags.cc|? stray_.file|? stray_.text|apps/cli/args_test.cc
block_adapts|apps/cli/check_together.cc|sampling.gamma2 == TIERCEL_ADAPTIVE|false|apps/cli/check_together_test.cc
flag_at_once|apps/cli/flags.cc|value = args\[i\].substr(2)|value = name.substr(2)|apps/cli/args_test.cc
predicted_gap|apps/commands/summary.cc|Number(predicted, "tbt_ms")|0 * Number(predicted, "tbt_ms")|apps/commands/summary_test.cc
chapter_level|apps/reader/outline.cc|return a.second.numbers < b.second.numbers|return a.second.sections < b.second.sections|apps/reader/outline_test.cc
chapter_asked|apps/reader/selection.cc|found < range.last - range.first + 1|found < 0|apps/reader/selection_test.cc
part_sentence|apps/commands/part_maker.cc|else if (made.writing.cut) {|else if (false) {|apps/cli_book_test.py
last_sentence|apps/reader/parts.cc|std::string(text) + " Another"|std::string(text)|apps/reader/parts_test.cc
lone_heading|apps/reader/parts.cc|next > enough|next < enough|apps/reader/parts_test.cc
place_blanks|apps/reader/places.cc|run.find_last_not_of(kBlanks) + 1|run.size()|apps/reader/places_test.cc
quoted_words|apps/reader/quotations.cc|kFewestWords = 4|kFewestWords = 5|apps/reader/quotations_test.cc
any_quotation|apps/reader/quotations.cc|if (first == std::string::npos) continue;|if (first == std::string::npos) first = 0;|apps/reader/quotations_test.cc
part_verb|apps/terminal/progress.cc|^  Show(state_.done, state_.total);||apps/cli_screen_test.py
long_line|apps/terminal/typed_lines.cc|in_long_line_ = end == std::string::npos;|in_long_line_ = false;|apps/terminal/typed_lines_test.cc
blank_lines|apps/terminal/typed_lines.cc|absl::StripAsciiWhitespace(read_).empty()|read_.empty()|apps/terminal/typed_lines_test.cc
excerpt_number|apps/reader/selection.cc|chapter->second|std::nullopt|apps/reader/selection_test.cc
page_dash|apps/reader/selection.cc|dash = item.find(.-., dash + 1)) {|dash = std::string::npos) {|apps/reader/selection_test.cc
spent_gap|apps/commands/total_cost.cc|size_t i = 1; i < token_seconds|size_t i = 0; i < token_seconds|apps/commands/total_cost_test.cc
spent_sums|apps/commands/total_cost.cc|AddNumbers(sums, .sums_);|sums_ = sums;|apps/commands/total_cost_test.cc
quoted_half|apps/reader/quotations.cc|IsInWord(text, at + wanted.size())|false|apps/reader/quotations_test.cc
quoted_capital|apps/reader/quotations.cc|lower != wanted|false|apps/reader/quotations_test.cc
quoted_place|apps/reader/quotations.cc|if (index == last)|if (index == last + 1)|apps/reader/quotations_test.cc
journal_damage|apps/reader/journal.cc|!= Hex(Fingerprint(body))|== "x"|apps/reader/journal_test.cc
notes_markup|apps/reader/notes.cc|`\*_\[\]<>|`*_[]>|apps/reader/notes_test.cc
window_agrees|models/tokenizer/merge_windows.cc|merger->first() == shared|merger->first().begin == shared.begin|models/tokenizer/merge_windows_test.cc
window_taken|models/tokenizer/merge_windows.cc|is_last ? size : shared.begin|is_last ? size : shared.begin + shared.bytes|models/tokenizer/merge_windows_test.cc
composed_in_parts|models/tokenizer/nfc.cc|kLeastMark = 0x300|kLeastMark = 0x110000|models/tokenizer/nfc_test.cc
spin_time|kernels/system/spin.h|now - began_ >= most_|now >= began_|kernels/system/spin_test.cc
pool_turns|kernels/system/thread_pool.cc|  const std::lock_guard<std::mutex> turn(turn_);||kernels/system/thread_pool_test.cc
fault_callee|kernels/system/faults.cc|if (faults->of_ != operation.of) continue;||kernels/system/faults_test.cc
fault_times|kernels/system/faults.h|left <= -times_|left < 0|kernels/system/faults_test.cc
fault_in_use|kernels/system/faults.cc|  const std::shared_lock lock(registry.mutex);||kernels/system/faults_test.cc
forked_pool|runtime/machine/machine.cc|if (pool_ == nullptr .*) return;|return;|runtime/machine/machine_test.cc
draft_planned|runtime/plan/plan.cc|site.draft_bytes = draft_bytes|(void)draft_bytes|runtime/api/model_api_test.cc
others_planned|runtime/plan/plan.cc|  weights.bytes += others;|  (void)others;|runtime/plan/plan_test.cc
weights_before|runtime/model/model.cc|  if (bytes <= free) return|  if (bytes < 2 * free) return|runtime/model/model_test.cc
wish_bounds|kernels/device/device.cc|if (limited()) return limits_->bytes;||runtime/machine/machine_test.cc
taken_counts|runtime/machine/machine.cc|most : free + taken|most : free|runtime/machine/machine_test.cc
unbegun_report|runtime/generate/generate.cc|    report.finish_reason = "cancelled";|    report = {};|runtime/api/cancel_test.cc
sticky_cancel|runtime/generate/generate.cc|  if (session.cancellation().cancelled()) return CancelledError();|  (void)session;|runtime/api/cancel_test.cc
draft_weights_once|runtime/plan/plan.cc|weights.bytes = 0;|weights.bytes += 0;|runtime/api/model_api_test.cc
draft_reserved|runtime/plan/tier_plan.h|return !in_place .. on_device;|return !in_place;|runtime/api/model_api_test.cc
logits_planned|runtime/plan/session_plan.cc|.logits = AlignedBytes(LogitRows()|.logits = AlignedBytes(0 * LogitRows()|runtime/plan/plan_test.cc
history_mode|apps/terminal/history_file.cc|0600);|0644);|apps/terminal/history_file_test.cc
longer_parts|apps/commands/text_length.cc|options.session.context >= made_for|true|apps/cli_prompt_cache_test.py
blamed_device|apps/commands/command.cc|ExitOf(status) == Exit::kDevice|false|apps/cli_test.py
reading_device|apps/commands/readings.cc|{computed.device, |{"", |apps/cli_book_test.py
reading_gamma|apps/commands/readings.cc|drawn.gamma1, drawn.gamma2|drawn.gamma1, 0|apps/cli_book_test.py
reading_settings|apps/commands/readings.cc|drawn.settings, |"", |apps/cli_book_test.py
reading_header|apps/commands/readings.cc|reader::Fingerprint(Dump(described))|0|tests/hosted_cli_test.py
prompts_by_library|runtime/machine/machine.cc|by_library ? "cublaslt, "|false ? "cublaslt, "|runtime/machine/machine_test.cc
whole_data|apps/commands/whole_file.cc|Uninterrupted(\[this\] { return fdatasync(fd_); }) == -1|false|apps/commands/whole_file_test.cc
whole_folder|apps/commands/whole_file.cc|return SyncDirectory(path_);|return path_.empty() ? SyncDirectory(path_) : absl::OkStatus();|apps/commands/whole_file_test.cc
whole_signal|apps/commands/whole_file.cc|result != -1 .. errno != EINTR|true|apps/commands/whole_file_test.cc
wake_errno|apps/terminal/signals.cc|  errno = before;|  (void)before;|apps/terminal/signals_test.cc
child_status|apps/terminal/signals.cc|  signal(SIGCHLD, SIG_DFL);||apps/terminal/signals_test.cc
held_streams|apps/terminal/signals.cc|fd == 0 ? O_WRONLY : O_RDONLY|O_RDWR|apps/terminal/signals_test.cc
history_newest|apps/terminal/history_file.cc|lines.erase(lines.begin(), lines.end() - kMostLines)|lines.resize(kMostLines)|apps/terminal/history_file_test.cc
forked_number|offload/disk/process_files.cc|std::erase(files.open, file)|std::erase(files.open, file + 1)|offload/disk/disk_calls_test.cc
forked_twice|offload/disk/process_files.cc|  Files().open.clear();||offload/disk/disk_calls_test.cc
room_without|offload/disk/disk_calls.cc|errno == ENOSYS .. errno == EINTR|false|offload/disk/disk_calls_test.cc
commit_sync|offload/prompt_cache/kv_file.cc|  if (status.ok()) status = writer.Sync();||offload/prompt_cache/kv_folder_test.cc
part_claimed|offload/prompt_cache/kv_folder.cc|  disk_.Close(std::exchange(file, -1));||offload/prompt_cache/kv_folder_test.cc
text_owner|offload/prompt_cache/kv_file.cc|status.st_uid != geteuid()|false|offload/prompt_cache/kv_folder_test.cc
prompt_unlinked|offload/prompt_cache/kv_folder.cc|status.st_nlink == 0) continue;|false) continue;|offload/prompt_cache/prompt_file_test.cc
prompt_no_room|offload/prompt_cache/kv_folder.cc|if (!opened.ok()) disk_.Remove(folder.fd(), name.c_str());||offload/prompt_cache/prompt_file_test.cc
prompt_owner|offload/prompt_cache/kv_folder.cc|        status.st_uid != geteuid()) {|        false) {|offload/prompt_cache/prompt_file_test.cc
pass_values|runtime/pass/step.cc|layout.VOffset(0, written), layout|layout.KOffset(0, written), layout|tests/hosted_test.cc
shares_stale|offload/retrieval/attention_shares.cc|digests_.Truncate(begin);.*||offload/retrieval/attention_shares_test.cc
lost_queue|kernels/device/sim/sim_queue.cc|queue.Forget();|(void)queue;|kernels/device/sim/sim_queue_test.cc
sim_lists|kernels/device/op.h|if (op.keep != nullptr) op.keep(own, lists);||kernels/device/sim/sim_queue_test.cc
sim_pages|kernels/attention/attention.cc|  p.pages = lists.Keep(p.pages, p.num_pages);||kernels/attention/attention_test.cc
sim_logits|runtime/session/runner.cc|return stream().Synchronize();|return absl::OkStatus();|sim/runtime/session/session_test.cc
sim_layer|offload/kv/tiered_kv.cc|bytes = pages_.OnDevicePage(layer, page)|bytes = pages_.OnDevicePage(0, page)|sim/runtime/session/disk_pages_test.cc
sim_mark|offload/move/copy_engine.cc|link_->Await(submission.mark)|link_->Await(0)|sim/runtime/session/disk_pages_test.cc
sim_finish|offload/move/gpu_link.cc|status.Update(copies_->Await(copies_->Mark()));||sim/runtime/session/disk_pages_test.cc
shares_device|offload/retrieval/attention_shares.cc|Divide({read_.data()|Divide({scores_.data().raw()|sim/runtime/session/attended_test.cc
shares_parts|offload/retrieval/attention_shares.cc|first_row \* QueryWidth|0 * first_row * QueryWidth|offload/retrieval/attention_shares_test.cc
shares_begin|offload/retrieval/attention_shares.cc|MeansOf(0) + before \* head_dim|MeansOf(0) + 0 * before * head_dim|offload/retrieval/attention_shares_test.cc
attended_whole|runtime/session/attended.cc|(from + kRun - 1) / kRun|from / kRun|runtime/session/attended_test.cc
shares_before|offload/retrieval/attention_shares.cc|kOfTheAnswer ? answer_ : before_|kOfTheAnswer ? answer_ : answer_|offload/retrieval/attention_shares_test.cc
attended_again|runtime/session/attended.cc|if (sequence_.kv_length() > end) {|if (false) {|runtime/session/attended_test.cc
'

declare -A heeded=()
is_chosen() {  # name file argument...
  local name=$1 file=$2 argument chosen=1
  shift 2
  (($# > 0)) || return 0
  for argument; do
    if [[ $argument == "$name" || $argument == */ && $file == "$argument"* ]]
    then
      heeded[$argument]=1
      chosen=0
    fi
  done
  return "$chosen"
}

# Names all faults that no longer apply to their file, before any is tried.
faults=()
stale=0
while IFS='|' read -r name file from to test; do
  [[ -n $name ]] || continue
  if [[ ! -e $file ]] || sed "s|$from|$to|" "$file" | cmp -s - "$file"; then
    echo "mutants: $name no longer applies to $file" >&2
    stale=1
  fi
  ! is_chosen "$name" "$file" "$@" || faults+=("$name|$file|$from|$to|$test")
done <<<"$MUTANTS"
((stale == 0)) || exit 2
for argument; do
  if [[ ! -v heeded[$argument] ]]; then
    echo "mutants: there is no $argument" >&2
    exit 2
  fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p build/mutants "$scratch/tree"
exec 8>build/mutants/lock
if ! flock -n 8; then
  echo "mutants: another run uses build/mutants" >&2
  exit 2
fi
git ls-files -z --cached --others --exclude-standard |
  xargs -0 cp --parents -t "$scratch/tree"
readonly TREE=$scratch/tree

# Makes the files of a copy those of the tree. What is the same is not touched,
# so that it is not built anew.
update() {  # copy
  local copy=$1 file
  mkdir -p "$copy"
  while IFS= read -r file; do
    [[ -e $TREE/$file ]] || rm "$copy/$file"
  done < <(cd "$copy" && find . -path ./build -prune -o -type f -print)
  while IFS= read -r file; do
    cmp -s "$TREE/$file" "$copy/$file" ||
      (cd "$TREE" && cp --parents "$file" "$copy")
  done < <(cd "$TREE" && find . -type f)
}

build() {  # copy test...
  local copy=$1 test
  local targets=()
  for test in "${@:2}"; do
    case $test in
      # A script's test needs the program, and some the one that has a GPU.
      tests/*.py) targets+=(tiercel_cli tiercel_hosted_cli) ;;
      bench/answers_test.py | bench/ruler_test.py) targets+=(answers) ;;
      *.py) targets+=(tiercel_cli) ;;
      *) test=${test//[\/.]/_} && targets+=("${test%_cc}") ;;
    esac
  done
  cmake --build "$copy/build/cpu" --target "${targets[@]}" \
    >"$copy/build/cpu/build.log" 2>&1
}

outcome_of() {  # copy test: passed, failed, "timed out" or "did not build"
  local copy=$1 test=$2
  if ! build "$copy" "$test"; then
    echo "did not build"
  # The first failure is enough: the cases after it may take forever.
  elif GTEST_THROW_ON_FAILURE=1 ctest --test-dir "$copy/build/cpu" \
    -C sim -R "^$test\$" --no-tests=error --timeout 300 \
    >"$copy/build/cpu/test.log" 2>&1; then
    echo passed
  elif grep -qF '***Timeout' "$copy/build/cpu/test.log"; then
    echo "timed out"
  else
    echo failed
  fi
}

# Tries the faults of one group, in the order of their files; writes the names
# of the survivors to a file.
try_group() {  # copy group
  local copy=$1 group=$2
  local name file from to test outcome began
  local tests=()
  mapfile -t tests < <(sed 's/.*|//' "$group" | sort -u)
  # A red test means something only if it was green before.
  for test in "${tests[@]}"; do
    if [[ $(outcome_of "$copy" "$test") != passed ]]; then
      echo "mutants: $test does not pass without a fault" >&2
      return 1
    fi
  done
  while IFS='|' read -ru 3 name file from to test; do
    began=$SECONDS
    sed "s|$from|$to|" "$TREE/$file" >"$copy/$file"
    outcome=$(outcome_of "$copy" "$test")
    case $outcome in
      failed) outcome=killed ;;
      passed) outcome=survived ;;
    esac
    printf '%-20s %-14s %4d s  %s\n' "$name" "$outcome" $((SECONDS - began)) \
      "$test"
    [[ $outcome == killed ]] || echo "$name" >>"$scratch/survivors"
    cp "$TREE/$file" "$copy/$file"
  done 3< <(sort -st '|' -k 2,2 "$group")
}

try_groups() {  # copy: those that no other worker has taken
  local copy=$1 group
  for group in "${groups[@]}"; do
    ! mkdir "$group.taken" 2>/dev/null || try_group "$copy" "$group"
  done
}

# The faults of one folder's tests are a group; the largest are tried first.
for fault in "${faults[@]}"; do
  folder=$(dirname "${fault##*|}")
  echo "$fault" >>"$scratch/group-${folder//\//-}"
done
mapfile -t groups < <(wc -l "$scratch"/group-* | sort -rn |
  sed -n 's/.* \(\/.*\)/\1/p')

# Builds the copies one after the other: ccache has for the second what the
# first has compiled.
mapfile -t tests < <(printf '%s\n' "${faults[@]##*|}" | sort -u)
copies=()
for ((worker = 0; worker < $(nproc) && worker < ${#groups[@]}; ++worker)); do
  copy=$PWD/build/mutants/$worker
  update "$copy"
  cmake -S "$copy" --preset cpu -DTIERCEL_UNITY=TESTS >/dev/null
  build "$copy" "${tests[@]}" || :  # each test is built again below
  copies+=("$copy")
done

running=()
for copy in "${copies[@]}"; do
  try_groups "$copy" &
  running+=($!)
done
failed=0
for worker in "${running[@]}"; do
  wait "$worker" || failed=1
done
((failed == 0)) || exit 1

survivors=()
[[ ! -e $scratch/survivors ]] || mapfile -t survivors <"$scratch/survivors"
echo "$((${#faults[@]} - ${#survivors[@]})) killed," \
  "${#survivors[@]} not: ${survivors[*]:-none}"
((${#survivors[@]} == 0))
