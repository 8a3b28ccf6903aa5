import { defineWebhook } from 'svc-platform/sdk';
import { addCounts } from './counts.js';
import { isPing, repositoryOf, senderOf, text } from './payload.js';

/** What is answered when there is nothing to count; GitHub shows it beside the delivery. */
const notCounted = (event, summary) => ({ event, counted: false, summary });

/** Counts an issue's life by action: opened, closed, labeled and so on. */
export const onIssues = defineWebhook({
  async execute(ctx, payload) {
    if (isPing(payload)) return notCounted('issues', 'GitHub says hello: the webhook works.');
    const repository = repositoryOf(payload);
    const { issue } = payload ?? {};
    if (!repository || !Number.isInteger(issue?.number) || payload.comment) {
      return notCounted('issues', 'Nothing was counted: this is no "issues" event of a repository.');
    }
    // The action becomes part of a key, so only words like GitHub's own are let in.
    const action = /^[a-z_]{1,40}$/.test(payload.action) ? payload.action : 'changed';
    const totals = await addCounts(ctx.state, repository, { issues: 1, [`issues.${action}`]: 1 });
    const sender = senderOf(payload);
    const title = text(issue.title) ?? 'without a title';
    ctx.log.info('issue event counted', { repository, action, issue: issue.number });
    return {
      event: 'issues',
      counted: true,
      repository,
      sender,
      action,
      issue: { number: issue.number, title },
      summary: `${sender} ${action.replaceAll('_', ' ')} issue #${issue.number} "${title}" in ${repository}`,
      totals,
    };
  },
});

/** Counts pushes and their commits; deleted branches and tags are pushes without commits. */
export const onPush = defineWebhook({
  async execute(ctx, payload) {
    if (isPing(payload)) return notCounted('push', 'GitHub says hello: the webhook works.');
    const repository = repositoryOf(payload);
    const ref = text(payload?.ref, 250);
    if (!repository || !ref) {
      return notCounted('push', 'Nothing was counted: this is no "push" event of a repository.');
    }
    const commits = Array.isArray(payload.commits) ? payload.commits.length : 0;
    const totals = await addCounts(ctx.state, repository, { pushes: 1, commits });
    const sender = senderOf(payload);
    ctx.log.info('push counted', { repository, ref, commits });
    return {
      event: 'push',
      counted: true,
      repository,
      sender,
      ref,
      commits,
      summary: `${sender} ${pushed(payload, ref, commits)} ${repository}`,
      totals,
    };
  },
});

function pushed(payload, ref, commits) {
  const name = ref.replace(/^refs\/(?:heads|tags)\//, '');
  const kind = ref.startsWith('refs/tags/') ? 'tag' : 'branch';
  if (payload.deleted === true) return `deleted the ${kind} ${name} of`;
  if (kind === 'tag') return `pushed the tag ${name} to`;
  return `pushed ${commits} ${commits === 1 ? 'commit' : 'commits'} to ${name} of`;
}
