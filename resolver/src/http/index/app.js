'use strict';
// Keeps the table true: rows come as events, rates are made of two of them. Texts are set as text, never as markup.
(() => {
  const rows = new Map(); // id → {now, before, at, seen, line}
  const body = document.getElementById('rows');
  const live = document.getElementById('live');
  const filter = document.getElementById('filter');
  document.getElementById('search').hidden = false;
  live.hidden = false;

  const make = (tag, cls, text) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (text) node.textContent = text;
    return node;
  };

  const ago = (text) => {
    const s = Math.max(0, Math.round((Date.now() - Date.parse(text)) / 1000));
    if (s < 60) return s + ' s ago';
    if (s < 3600) return Math.floor(s / 60) + ' min ago';
    if (s < 86400) return Math.floor(s / 3600) + ' h ago';
    return Math.floor(s / 86400) + ' d ago';
  };

  const moment = (text) => {
    const node = make('time', '', ago(text));
    node.dateTime = text;
    node.title = new Date(text).toLocaleString();
    return node;
  };

  const bytes = (n) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let at = 0;
    while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
    return (at && n < 10 ? n.toFixed(1) : Math.round(n)) + ' ' + units[at];
  };

  const address = (row) => {
    const cell = make('td');
    if (!row.address) return cell;
    if (/^https?:/.test(row.address) && !row.address.includes('*')) {
      const link = make('a', '', row.address);
      link.href = row.address;
      cell.append(link);
      return cell;
    }
    cell.append(make('code', '', row.address));
    if (navigator.clipboard) {
      const copy = make('button', '', 'copy');
      copy.type = 'button';
      copy.setAttribute('aria-label', 'copy ' + row.address);
      copy.addEventListener('click', () => navigator.clipboard.writeText(row.address).then(() => {
        copy.textContent = 'copied';
        setTimeout(() => { copy.textContent = 'copy'; }, 1500);
      }));
      cell.append(copy);
    }
    return cell;
  };

  const traffic = (entry) => {
    const cell = make('td', 'rate');
    const { now, before } = entry;
    const t = now.traffic;
    const http = now.kind === 'http';
    const lines = [];
    if (before && entry.at > entry.beforeAt) {
      const s = (entry.at - entry.beforeAt) / 1000;
      const per = (key) => Math.max(0, (t[key] - before[key]) / s);
      const events = per(http ? 'requests' : 'opened');
      const flow = per('bytes_up') + per('bytes_down');
      if (events > 0) lines.push((events < 10 ? events.toFixed(1) : Math.round(events)) + (http ? ' req/s' : ' conn/s'));
      if (flow > 0) lines.push(bytes(flow) + '/s');
    }
    if (t.active) lines.push(t.active + ' now');
    const total = http ? t.requests : t.opened;
    if (!lines.length && total) lines.push(total.toLocaleString() + (http ? ' request' : ' connection') + (total === 1 ? '' : 's'));
    if (http && t.failed) lines.push(t.failed.toLocaleString() + ' failed');
    lines.forEach((text, i) => { if (i) cell.append(make('br')); cell.append(text); });
    return cell;
  };

  const draw = (entry) => {
    const row = entry.now;
    const line = make('tr', row.state);
    const name = make('th');
    name.scope = 'row';
    const told = make('a', '', row.name);
    told.href = '/story?id=' + encodeURIComponent(row.id);
    name.append(told);
    if (row.from === 'fleet') name.append(make('span', 'tag', 'fleet'));
    if (row.consumer) name.append(make('span', 'soft', 'for ' + row.consumer));
    const state = make('td');
    state.append(make('span', 'state', row.state));
    if (row.reason) state.append(make('span', 'why', row.reason));
    const place = make('td');
    place.append(make('code', '', row.place));
    const since = make('td');
    if (row.since) since.append(moment(row.since));
    const error = make('td', 'error');
    if (row.last_error) error.append(moment(row.last_error.at), make('br'), row.last_error.cause);
    line.append(name, state, address(row), place, since, traffic(entry), error);
    line.dataset.id = row.id;
    // What a person is on stays under their fingers.
    const stops = (of) => [...of.querySelectorAll('a, button')];
    const focused = entry.line ? stops(entry.line).indexOf(document.activeElement) : -1;
    if (entry.line) { line.hidden = entry.line.hidden; entry.line.replaceWith(line); }
    const same = focused < 0 ? undefined : stops(line)[focused];
    if (same) same.focus({ preventScroll: true });
    entry.line = line;
  };

  const order = (a, b) => a.now.name < b.now.name ? -1 : a.now.name > b.now.name ? 1
    : a.now.from !== b.now.from ? (a.now.from === 'mesh' ? -1 : 1) : a.now.id < b.now.id ? -1 : 1;

  const place = () => {
    let next = body.firstChild;
    for (const entry of [...rows.values()].sort(order)) {
      if (entry.line === next) next = next.nextSibling;
      else body.insertBefore(entry.line, next);
    }
    while (next) { const after = next.nextSibling; next.remove(); next = after; }
    if (!rows.size) {
      const line = make('tr', 'none');
      const cell = make('td', '', 'No service yet. Register one in a terminal:');
      cell.colSpan = 7;
      cell.append(make('br'), make('code', '', 'stado service register --name web --kind http --backend 127.0.0.1:3000'));
      line.append(cell);
      body.append(line);
    }
  };

  const sift = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { now, line } of rows.values()) {
      const text = [now.name, now.consumer, now.address, now.place, now.state, now.reason].join(' ').toLowerCase();
      const hidden = !words.every((word) => text.includes(word));
      if (line.hidden !== hidden) line.hidden = hidden;
    }
  };

  const summary = () => {
    const count = {};
    for (const { now } of rows.values()) count[now.state] = (count[now.state] || 0) + 1;
    const states = ['ready', 'unavailable', 'unserved'].filter((s) => count[s]).map((s) => count[s] + ' ' + s);
    const text = rows.size + (rows.size === 1 ? ' service' : ' services') + (states.length ? ': ' + states.join(', ') : '');
    const node = document.getElementById('summary');
    if (node.textContent !== text) node.textContent = text;
  };

  // The picture is made by the daemon; it is fetched again when a route or its host changed.
  let drawn;
  const picture = () => {
    const old = document.getElementById('picture');
    if (!old) return;
    const ways = [...rows.values()].filter(({ now }) => now.from === 'fleet');
    const key = ways.map(({ now }) => [now.id, now.state, now.place, now.reason].join(' ')).sort().join('\n');
    if (key === drawn) return;
    const first = drawn === undefined;
    drawn = key;
    if (first) return;
    const request = new XMLHttpRequest();
    request.responseType = 'document';
    request.addEventListener('load', () => {
      const made = request.responseXML && request.responseXML.documentElement;
      if (made && made.id === 'picture' && !old.contains(document.activeElement)) old.replaceWith(document.importNode(made, true));
    });
    request.open('GET', '/fleet.svg');
    request.send();
  };

  const take = (update) => {
    if (update.whole) {
      const ids = new Set(update.rows.map((row) => row.id));
      for (const id of [...rows.keys()]) if (!ids.has(id)) rows.delete(id);
    }
    for (const id of update.gone || []) rows.delete(id);
    for (const row of update.rows) {
      const entry = rows.get(row.id) || {};
      entry.before = entry.now && entry.now.traffic;
      entry.beforeAt = entry.at;
      entry.now = row;
      entry.at = update.at;
      entry.seen = Date.now();
      rows.set(row.id, entry);
      draw(entry);
    }
    place();
    sift();
    summary();
    picture();
  };

  const stream = new EventSource('/events');
  stream.addEventListener('open', () => { live.textContent = 'live'; live.className = ''; });
  stream.addEventListener('error', () => { live.textContent = 'not connected, trying again'; live.className = 'lost'; });
  stream.addEventListener('rows', (event) => take(JSON.parse(event.data)));

  filter.addEventListener('input', sift);
  document.addEventListener('keydown', (event) => {
    const typing = /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); filter.focus(); }
    if (event.key === 'Escape' && document.activeElement === filter) { filter.value = ''; sift(); filter.blur(); }
  });
  // Rates fall to nothing and times go on also where no event comes.
  setInterval(() => {
    for (const node of document.querySelectorAll('#rows time')) {
      const text = ago(node.dateTime);
      if (node.textContent !== text) node.textContent = text;
    }
    for (const entry of rows.values()) {
      if (entry.before && Date.now() - entry.seen > 2500) { entry.before = null; draw(entry); }
    }
  }, 1000);
})();
