import { clearQueries } from '../api/query.ts';
import { followAddress, inNamespace } from './namespace.ts';

/** Events that come before a link is opened, in this tab or in another one, or before its address is copied. */
const BEFORE_OPENING = ['pointerdown', 'click', 'auxclick', 'contextmenu', 'dragstart'];

/** Keeps the chosen namespace in links of the studio, and takes it from the address after Back and Forward. */
export function keepNamespaceInLinks(): void {
  for (const name of BEFORE_OPENING) addEventListener(name, addNamespace, { capture: true });
  addEventListener('popstate', () => {
    // Results of a namespace must not be shown in another one.
    if (followAddress()) clearQueries();
  });
}

function addNamespace({ target }: Event): void {
  const link = target instanceof Element ? target.closest('a') : null;
  const href = link?.getAttribute('href');
  if (link && href?.startsWith('/studio')) link.setAttribute('href', inNamespace(href));
}
