import { signal } from '@preact/signals';
import { session } from './session-state.ts';

/** Names that the API accepts as a namespace. */
export const NAMESPACE_PATTERN = '[A-Za-z0-9][A-Za-z0-9._:@\\-]{0,127}';

/** Parameter of the address that names the chosen namespace. */
export const NAMESPACE_PARAMETER = 'namespace';

/** Namespace that the address or the administrator has chosen. */
const chosen = signal(chosenIn(location.search));

/** Returns the namespace that calls must name. Undefined if it is that of the session. */
export function foreignNamespace(): string | undefined {
  const current = session.value;
  return current?.admin && chosen.value !== current.namespaceId ? chosen.value : undefined;
}

/** Chooses the namespace in which an administrator acts. Undefined stands for that of the session. */
export function chooseNamespace(namespaceId: string | undefined): void {
  chosen.value = namespaceId;
}

/** Chooses the namespace that the address names. Returns whether it is another one than before. */
export function followAddress(): boolean {
  const before = foreignNamespace();
  chosen.value = chosenIn(location.search);
  return foreignNamespace() !== before;
}

/** Returns an address of the studio with the namespace in which it is opened, for new tabs. */
export function inNamespace(href: string): string {
  const url = new URL(href, location.origin);
  const namespaceId = foreignNamespace();
  if (namespaceId === undefined && !url.searchParams.has(NAMESPACE_PARAMETER)) return href;
  if (namespaceId === undefined) url.searchParams.delete(NAMESPACE_PARAMETER);
  else url.searchParams.set(NAMESPACE_PARAMETER, namespaceId);
  return url.pathname + url.search + url.hash;
}

function chosenIn(search: string): string | undefined {
  const named = new URLSearchParams(search).get(NAMESPACE_PARAMETER);
  return named && new RegExp(`^${NAMESPACE_PATTERN}$`).test(named) ? named : undefined;
}
