import type { SignInProblem } from '../../contracts/studio.ts';

const TEXTS: Record<SignInProblem, string> = {
  not_begun:
    'This sign-in was not started in this browser, or it took longer than 10 minutes. Please sign in again.',
  refused: 'The identity provider did not sign you in. Please try again.',
  invalid:
    'The answer of the identity provider is not valid, so you are not signed in. Please try again. If it fails again, ask your administrator.',
  no_role:
    'You are signed in at the identity provider, but you have no role here. Ask your administrator to give one of your groups a role.',
  too_large:
    'Too many of your groups have a role here, so you are not signed in. Ask your administrator to give roles to fewer groups.',
  unavailable: 'The identity provider does not answer. Try again later, or sign in with a token.',
  too_many: 'There were too many sign-ins from your address. Wait a minute, then try again.',
  failed: 'The sign-in failed. Please try again. If it fails again, ask your administrator.',
};

/** Returns why the sign-in with the identity provider failed, and removes the reason from the address. */
export function takeProblem(): string | undefined {
  if (location.pathname !== '/studio/sign-in') return undefined;
  const query = new URLSearchParams(location.search);
  const problem = query.get('problem') ?? '';
  if (!Object.hasOwn(TEXTS, problem)) return undefined;
  history.replaceState(null, '', `/studio/${location.hash}`);
  const request = query.get('request');
  const text = TEXTS[problem as SignInProblem];
  return request && /^[\w-]{1,128}$/.test(request) ? `${text} (Request ${request})` : text;
}
