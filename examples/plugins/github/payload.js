/** GitHub's own rules for the names of owners and repositories. */
const FULL_NAME = /^[A-Za-z0-9-]{1,39}(?:_[A-Za-z0-9]+)?\/[A-Za-z0-9._-]{1,100}$/;

/** The text, if it is one, cut to a length that fits a sentence. */
export function text(value, longest = 120) {
  if (typeof value !== 'string' || value === '') return undefined;
  return value.length <= longest ? value : `${value.slice(0, longest - 1)}…`;
}

export const isRepositoryName = (name) => typeof name === 'string' && FULL_NAME.test(name);

/** `octocat/hello-world`, or undefined when the payload names no repository (an app's or organisation's event). */
export function repositoryOf(payload) {
  const name = payload?.repository?.full_name;
  return isRepositoryName(name) ? name : undefined;
}

/** Who caused the event; GitHub leaves the sender out of a few old events. */
export function senderOf(payload) {
  return text(payload?.sender?.login) ?? text(payload?.pusher?.name) ?? 'somebody';
}

/** GitHub sends this once, when a webhook is created: to the URL of whatever event was chosen. */
export function isPing(payload) {
  return typeof payload?.zen === 'string' && payload.hook_id !== undefined;
}
