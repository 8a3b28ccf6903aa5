/** Addresses of the list that was shown last, in their order. */
let shown: readonly string[] = [];

/** Remembers the rows of a list, for the links between the details of its rows. */
export function rememberList(hrefs: readonly string[]): void {
  // While the next screen loads, the list is still rendered, but without the filters of its address.
  if (hrefs[0]?.startsWith(`${location.pathname.replace(/\/$/, '')}/`)) shown = hrefs;
}

/** Links to the previous and next row of the list from which this page was opened. */
export function Neighbours({ href }: { href: string }) {
  const index = shown.indexOf(href);
  if (index === -1) return null;
  return (
    <nav class="actions" aria-label="Neighbours in the list">
      {shown[index - 1] && <a href={shown[index - 1]}>Previous</a>}
      {shown[index + 1] && <a href={shown[index + 1]}>Next</a>}
    </nav>
  );
}
