//! A file of packets, as tcpdump or Wireshark write it: classic pcap or pcapng, IP packets without a frame around them (`LINKTYPE_RAW`), nanoseconds.
//!
//! A socket gives payloads, not packets. So the headers are made: addresses and ports are the real ones, checksums are right, and a TCP
//! connection has its handshake and its numbers, cut into segments as an Ethernet would have them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use etherparse::{PacketBuilder, PacketBuilderStep, TcpHeader};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError, TsResolution};

/// What a TCP segment holds, on an Ethernet.
const SEGMENT_BYTES_MAX: usize = 1_460;
/// The numbers that a connection's ends begin with; tshark takes 0 for none.
const FIRST: [u32; 2] = [1_000, 2_000];
/// What a packet of SoupBinTCP begins with.
const LENGTH_BYTES: usize = 2;
/// A power of ten, as pcapng says it.
const NANOSECONDS: u8 = 9;
/// What made packets say of their way.
const HOPS: u8 = 64;

/// How a file says it.
enum Format {
    Classic(PcapWriter<BufWriter<File>>),
    Ng(PcapNgWriter<BufWriter<File>>),
}

/// A file that packets are written to.
pub struct PacketFile {
    writer: Format,
    /// Packets written.
    pub packets: u64,
    /// Their payloads.
    pub bytes: u64,
}

impl PacketFile {
    /// An empty file, classic pcap.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let header = PcapHeader {
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let file = BufWriter::new(File::create(path)?);
        let writer = PcapWriter::with_header(file, header).map_err(as_io)?;
        Ok(Self { writer: Format::Classic(writer), packets: 0, bytes: 0 })
    }

    /// An empty file, pcapng.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create_ng(path: &Path) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(BufWriter::new(File::create(path)?)).map_err(as_io)?;
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)],
        };
        writer.write_pcapng_block(interface).map_err(as_io)?;
        Ok(Self { writer: Format::Ng(writer), packets: 0, bytes: 0 })
    }

    /// A datagram that came.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn datagram(&mut self, at: Duration, [from, to]: [SocketAddr; 2], payload: &[u8]) -> io::Result<()> {
        let builder = PacketBuilder::ipv4(octets(from), octets(to), HOPS).udp(from.port(), to.port());
        let mut packet = Vec::with_capacity(builder.size(payload.len()));
        builder.write(&mut packet, payload).map_err(io::Error::other)?;
        self.put(at, &packet, payload.len())
    }

    fn segment(
        &mut self,
        at: Duration,
        builder: PacketBuilderStep<TcpHeader>,
        payload: &[u8],
    ) -> io::Result<()> {
        let mut packet = Vec::with_capacity(builder.size(payload.len()));
        builder.write(&mut packet, payload).map_err(io::Error::other)?;
        self.put(at, &packet, payload.len())
    }

    fn put(&mut self, at: Duration, packet: &[u8], payload: usize) -> io::Result<()> {
        let length = u32::try_from(packet.len()).map_err(io::Error::other)?;
        match &mut self.writer {
            Format::Classic(writer) => {
                _ = writer.write_packet(&PcapPacket::new(at, length, packet)).map_err(as_io)?
            }
            Format::Ng(writer) => {
                let block = EnhancedPacketBlock {
                    interface_id: 0,
                    timestamp: at,
                    original_len: length,
                    data: packet.into(),
                    options: Vec::new(),
                };
                writer.write_pcapng_block(block).map_err(as_io)?;
            }
        }
        self.packets += 1;
        self.bytes += payload as u64;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If what is left cannot be written.
    pub fn finish(self) -> io::Result<()> {
        let mut file = match self.writer {
            Format::Classic(writer) => writer.into_writer(),
            Format::Ng(writer) => writer.into_inner(),
        };
        file.flush()?;
        file.get_ref().sync_all()
    }
}

/// A TCP connection as packets. Ends are numbered: 0 is the client, 1 the server.
pub struct MadeConnection {
    ends: [SocketAddr; 2],
    /// The number of the next byte of each.
    next: [u32; 2],
    is_soup: bool,
    /// Length of the server's first packet of SoupBinTCP, 2 bytes at most so far.
    head: Vec<u8>,
    /// Bytes that are left of that packet's body.
    first_left: usize,
}

impl MadeConnection {
    /// One that was opened now: its handshake is written.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn opened(file: &mut PacketFile, at: Duration, ends: [SocketAddr; 2]) -> io::Result<Self> {
        let mut connection = Self { ends, next: FIRST, is_soup: false, head: Vec::new(), first_left: 0 };
        let syn = connection.packet(0).syn();
        file.segment(at, syn, &[])?;
        connection.next[0] += 1;
        let answer = connection.packet(1).syn().ack(connection.next[0]);
        file.segment(at, answer, &[])?;
        connection.next[1] += 1;
        let last = connection.packet(0).ack(connection.next[1]);
        file.segment(at, last, &[])?;
        Ok(connection)
    }

    /// Of one that speaks SoupBinTCP a segment ends behind the server's first packet, the Login Accepted: Wireshark's dissector learns from that which number
    /// comes next, and loses messages that stand in the same segment.
    #[must_use]
    pub fn of_soup(self) -> Self {
        Self { is_soup: true, ..self }
    }

    /// How many of the server's bytes are of its first packet.
    fn first_of(&mut self, bytes: &[u8]) -> usize {
        let missing = if self.is_soup { LENGTH_BYTES - self.head.len() } else { 0 };
        let (length, rest) = bytes.split_at(missing.min(bytes.len()));
        self.head.extend_from_slice(length);
        if !length.is_empty()
            && let Some(length) = self.head.first_chunk()
        {
            self.first_left = usize::from(u16::from_be_bytes(*length));
        }
        let body = self.first_left.min(rest.len());
        self.first_left -= body;
        length.len() + body
    }

    /// An end sent these bytes.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn sent(&mut self, file: &mut PacketFile, at: Duration, end: usize, bytes: &[u8]) -> io::Result<()> {
        let (first, rest) = bytes.split_at(if end == 1 { self.first_of(bytes) } else { 0 });
        for piece in first.chunks(SEGMENT_BYTES_MAX).chain(rest.chunks(SEGMENT_BYTES_MAX)) {
            let packet = self.packet(end).ack(self.next[1 - end]).psh();
            file.segment(at, packet, piece)?;
            let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
            self.next[end] = self.next[end].wrapping_add(length);
        }
        Ok(())
    }

    /// The next bytes of an end begin behind so many, of which some may be missing.
    pub fn skip_to(&mut self, end: usize, bytes: u64) {
        let next = FIRST[end].wrapping_add(1).wrapping_add(bytes as u32);
        if end == 1 && next != self.next[end] {
            // The first packet is not whole: what follows may be the middle of another.
            (self.is_soup, self.first_left) = (false, 0);
        }
        self.next[end] = next;
    }

    /// Both ends end it.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn closed(&mut self, file: &mut PacketFile, at: Duration) -> io::Result<()> {
        for end in [1, 0] {
            let packet = self.packet(end).ack(self.next[1 - end]).fin();
            file.segment(at, packet, &[])?;
            self.next[end] = self.next[end].wrapping_add(1);
        }
        Ok(())
    }

    fn packet(&self, end: usize) -> PacketBuilderStep<TcpHeader> {
        let [from, to] = [self.ends[end], self.ends[1 - end]];
        PacketBuilder::ipv4(octets(from), octets(to), HOPS).tcp(
            from.port(),
            to.port(),
            self.next[end],
            u16::MAX,
        )
    }
}

/// Lines and replayers have addresses of IPv4; pares.toml is checked for that.
fn octets(address: SocketAddr) -> [u8; 4] {
    match address.ip() {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(ip) => ip.to_ipv4().unwrap_or(Ipv4Addr::UNSPECIFIED).octets(),
    }
}

fn as_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::SlicedPacket;
    use pcap_file::pcap::PcapReader;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// The payloads of a file's packets, whose checksums are right.
    fn payloads(path: &Path) -> Vec<(u16, Vec<u8>)> {
        let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
        assert_eq!(reader.header().datalink, DataLink::RAW);
        let mut read = Vec::new();
        while let Some(packet) = reader.next_packet() {
            let data = packet.unwrap().data;
            let sliced = SlicedPacket::from_ip(&data).unwrap();
            let etherparse::NetSlice::Ipv4(ip) = sliced.net.unwrap() else { panic!("IPv4") };
            assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
            let header = ip.header().to_header();
            match sliced.transport.unwrap() {
                etherparse::TransportSlice::Udp(udp) => {
                    let right = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
                    assert_eq!(udp.checksum(), right);
                    read.push((udp.source_port(), udp.payload().to_vec()));
                }
                etherparse::TransportSlice::Tcp(tcp) => {
                    let right = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap();
                    assert_eq!(tcp.checksum(), right);
                    read.push((tcp.source_port(), tcp.payload().to_vec()));
                }
                other => panic!("{other:?}"),
            }
        }
        read
    }

    #[test]
    fn datagrams_and_connections_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some.pcap");
        let mut file = PacketFile::create(&path).unwrap();
        let now = Duration::new(1_700_000_000, 7);
        file.datagram(now, [address(1), address(2)], b"a packet").unwrap();
        let mut connection = MadeConnection::opened(&mut file, now, [address(3), address(4)]).unwrap();
        connection.sent(&mut file, now, 0, b"login").unwrap();
        connection.sent(&mut file, now, 1, &[7; 2_000]).unwrap();
        assert_eq!((file.packets, file.bytes), (7, 8 + 5 + 2_000));
        file.finish().unwrap();
        let read = payloads(&path);
        let handshake = [(3, vec![]), (4, vec![]), (3, vec![])];
        assert_eq!(read[0], (1, b"a packet".to_vec()));
        assert_eq!(read[1..4], handshake);
        assert_eq!(read[4..], [(3, b"login".to_vec()), (4, vec![7; 1_460]), (4, vec![7; 540])]);
    }

    #[test]
    fn a_segment_ends_behind_the_login_that_was_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some.pcap");
        let mut file = PacketFile::create(&path).unwrap();
        let accepted = [&[0, 31, b'A'][..], &[b' '; 30]].concat();
        let all = [&accepted[..], b"\0\x02S1", b"\0\x02S2"].concat();
        let now = Duration::from_secs(1);
        // Read at once, and in two parts, of which one ends within the length.
        for (port, cut) in [(5, all.len()), (7, 20), (9, 1)] {
            let ends = [address(3), address(port)];
            let mut connection = MadeConnection::opened(&mut file, now, ends).unwrap().of_soup();
            connection.sent(&mut file, now, 0, b"\0\x01R").unwrap();
            connection.sent(&mut file, now, 1, &all[..cut]).unwrap();
            connection.sent(&mut file, now, 1, &all[cut..]).unwrap();
            connection.sent(&mut file, now, 1, b"\0\x01H").unwrap();
        }
        // Of one whose beginning is missing nothing is known.
        let mut late = MadeConnection::opened(&mut file, now, [address(3), address(11)]).unwrap().of_soup();
        late.skip_to(1, 5);
        late.sent(&mut file, now, 1, &all[5..]).unwrap();
        file.finish().unwrap();
        let read = payloads(&path);
        let of = |port| read.iter().filter(move |(from, bytes)| *from == port && !bytes.is_empty());
        let lengths = |port| of(port).map(|(_, bytes)| bytes.len()).collect::<Vec<_>>();
        assert_eq!((lengths(5), lengths(7)), (vec![33, 8, 3], vec![20, 13, 8, 3]));
        assert_eq!((lengths(9), lengths(11)), (vec![1, 32, 8, 3], vec![all.len() - 5]));
    }
}
