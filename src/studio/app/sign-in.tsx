import { useEffect, useState } from 'preact/hooks';
import { call, type Reply } from '../api/call.ts';
import { signIn } from './session.ts';
import { takeProblem } from './sign-in-problem.ts';

type Proof = Parameters<typeof signIn>[0];
type Provider = Reply<'getStudioSignInOptions'>['identityProvider'];

/** Form with which a person signs in. A one-time link in the fragment of the address signs in without the form. */
export function SignIn() {
  const [error, setError] = useState(takeProblem);
  const [isBusy, setBusy] = useState(false);
  const submit = async (proof: Proof): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await signIn(proof);
    } catch (thrown) {
      setError((thrown as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const [provider, setProvider] = useState<Provider>(null);
  useEffect(() => {
    const link = takeLink();
    if (link) void submit({ link });
    // Without an answer, the form still works.
    call('getStudioSignInOptions', {}).then(
      ({ identityProvider }) => setProvider(identityProvider),
      () => {},
    );
  }, []);
  return (
    <main id="main" class="sign-in">
      <h1>Sign in to svc</h1>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {provider && (
        <>
          <a class="button" href={`${provider.url}?${new URLSearchParams({ returnTo: currentPath() })}`}>
            Sign in with {provider.name}
          </a>
          <p class="or">or</p>
        </>
      )}
      <form onSubmit={(event) => void submit(proofOf(event))}>
        <label>
          Token
          <input name="token" type="password" autoComplete="off" />
        </label>
        <p class="or">or</p>
        <label>
          Client id
          <input name="clientId" autoComplete="username" />
        </label>
        <label>
          Client secret
          <input name="clientSecret" type="password" autoComplete="current-password" />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
      <p class="hint">
        On the machine that runs svc, <code>svc studio</code> opens this page signed in.
      </p>
    </main>
  );
}

/** Returns the one-time link of the address and removes it from the history. */
function takeLink(): string | null {
  const link = new URLSearchParams(location.hash.slice(1)).get('link');
  if (!link) return null;
  history.replaceState(null, '', currentPath());
  return link;
}

/** Returns the screen to show after the sign-in. */
function currentPath(): string {
  return location.pathname === '/studio/sign-in' ? '/studio/' : location.pathname + location.search;
}

function proofOf(event: SubmitEvent): Proof {
  event.preventDefault();
  const form = new FormData(event.currentTarget as HTMLFormElement);
  const field = (name: string): string => String(form.get(name) ?? '').trim();
  const token = field('token');
  return token === '' ? { clientId: field('clientId'), clientSecret: field('clientSecret') } : { token };
}
