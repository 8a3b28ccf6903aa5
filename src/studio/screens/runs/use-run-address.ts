import { useLocation } from 'preact-iso';

interface Shown {
  view?: 'timeline' | 'graph';
  step?: string | undefined;
  rerun?: string;
}

/** Returns a function that replaces the address of the run's screen. The view remains unless another one is given. */
export function useRunAddress(): (shown: Shown) => void {
  const { path, query, route } = useLocation();
  return ({ view = query.view === 'graph' ? 'graph' : 'timeline', step, rerun }) => {
    const parameters = new URLSearchParams();
    if (view === 'graph') parameters.set('view', view);
    if (step !== undefined) parameters.set('step', step);
    if (rerun !== undefined) parameters.set('rerun', rerun);
    route(parameters.size === 0 ? path : `${path}?${parameters}`, true);
  };
}
