import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { StudioSession } from '../../contracts/studio.ts';
import { call } from '../api/call.ts';
import { clearQueries } from '../api/query.ts';
import { chooseNamespace, foreignNamespace, NAMESPACE_PARAMETER, NAMESPACE_PATTERN } from './namespace.ts';

const MAX_SUGGESTIONS = 200;

/** Namespace of the session. Administrators can switch to another one. */
export function NamespaceSwitch({ session }: { session: StudioSession }) {
  const current = foreignNamespace() ?? session.namespaceId;
  useNamespaceInAddress(foreignNamespace());
  const title = `Signed in as ${session.hostId}`;
  if (!session.admin) {
    return (
      <span class="identity" title={title}>
        {current}
      </span>
    );
  }
  return <Switch key={current} current={current} own={session.namespaceId} title={title} />;
}

function Switch({ current, own, title }: { current: string; own: string; title: string }) {
  const { path, route } = useLocation();
  const [names, setNames] = useState<readonly string[]>([own]);
  const input = useRef<HTMLInputElement>(null);
  const change = (): void => {
    const named = input.current!.value.trim();
    if (!input.current!.reportValidity() || named === current) return;
    clearQueries();
    chooseNamespace(named === own ? undefined : named);
    // A delivery, run or plugin of one namespace does not exist in another one, its list does.
    route(path.split('/').slice(0, 3).join('/'));
  };
  const suggest = (): void => {
    void namespaces().then((found) => setNames([...new Set([own, ...found])].sort()));
  };
  return (
    <span class="identity">
      <input
        ref={input}
        aria-label="Namespace"
        title={title}
        list="namespaces"
        required
        pattern={NAMESPACE_PATTERN}
        defaultValue={current}
        onFocus={(event) => {
          event.currentTarget.select();
          suggest();
        }}
        onChange={change}
      />
      <datalist id="namespaces">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </span>
  );
}

/** Returns the namespaces of clients and hosts, as suggestions. A namespace without any of them can be typed. */
async function namespaces(): Promise<string[]> {
  const query = { limit: MAX_SUGGESTIONS };
  const lists = await Promise.allSettled([
    call('listClients', { query }, { inAllNamespaces: true }),
    call('listHosts', { query }, { inAllNamespaces: true }),
  ]);
  return lists.flatMap((list) =>
    list.status === 'fulfilled' ? list.value.items.map(({ namespaceId }) => namespaceId) : [],
  );
}

/** Keeps the chosen namespace in the address, so that a link opens the same namespace. */
function useNamespaceInAddress(namespaceId: string | undefined): void {
  const { path, query, route } = useLocation();
  const shown = query[NAMESPACE_PARAMETER];
  useEffect(() => {
    if (shown === namespaceId) return;
    const search = new URLSearchParams(query);
    if (namespaceId === undefined) search.delete(NAMESPACE_PARAMETER);
    else search.set(NAMESPACE_PARAMETER, namespaceId);
    route(search.size > 0 ? `${path}?${search}` : path, true);
  }, [path, shown, namespaceId]);
}
