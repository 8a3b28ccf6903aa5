import { ApiError, call, type Input } from '../api/call.ts';
import { clearQueries } from '../api/query.ts';
import { session } from './session-state.ts';

/** Reads the session of the cookie. */
export async function restoreSession(): Promise<void> {
  try {
    session.value = await call('getStudioSession', {});
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    session.value = null;
  }
}

export async function signIn(proof: NonNullable<Input<'startStudioSession'>['body']>): Promise<void> {
  session.value = await call('startStudioSession', { body: proof });
}

export async function signOut(): Promise<void> {
  await call('endStudioSession', {});
  clearQueries();
  session.value = null;
}
